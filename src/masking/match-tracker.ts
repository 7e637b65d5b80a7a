/**
 * One reading of a stream: where in the patterns it stands, and where the bytes that led there were. A masker has two, of the bytes as
 * they are and of what a terminal shows of them.
 */
import type { Automaton } from './aho-corasick.ts';
import { LONGEST_PATTERN_BYTES } from './encodings.ts';

const LF = 10;
const CR = 13;
const RING = LONGEST_PATTERN_BYTES + 1;
/** Of a pattern's beginning that waits: a quarter of it, and no more than this, may be shown before it is known what follows. */
const MOST_RELEASED_BYTES = 8;
const RELEASED_PART = 4;

export class MatchTracker {
  readonly #automaton: Automaton;
  /** How many line breaks (CR and LF counted each) in a row a match may have inside. */
  readonly #mostBreaks: number;
  #state = 0;
  #breaks = 0;
  /** Positions of the last bytes that were no line breaks, by their number modulo the length: where matches and beginnings start. */
  readonly #places = new Float64Array(RING);
  /** For each of them, how many bytes had been skipped before it. */
  readonly #skipped = new Float64Array(RING);
  #solid = 0;

  constructor(automaton: Automaton, mostBreaks: number) {
    this.#automaton = automaton;
    this.#mostBreaks = mostBreaks;
  }

  /** Whether nothing that was read can become part of a match. */
  get isIdle(): boolean {
    return this.#state === 0;
  }

  /** Goes on from where the other one stands. */
  follow(other: MatchTracker): void {
    this.#state = other.#state;
    this.#breaks = other.#breaks;
    this.#places.set(other.#places);
    this.#skipped.set(other.#skipped);
    this.#solid = other.#solid;
  }

  reset(): void {
    this.#state = 0;
  }

  /** Answers where the longest match began that ends with this byte; -1 where none does. `skipped` counts bytes before it in all. */
  read(byte: number, position: number, skipped: number): number {
    const automaton = this.#automaton;
    if (byte === LF || byte === CR) {
      if (this.#state !== 0 && ++this.#breaks > this.#mostBreaks) this.#state = 0;
      return -1;
    }
    const state = automaton.next(this.#state, byte);
    this.#state = automaton.rests[state] ?? 0;
    if (state === 0) return -1;
    this.#breaks = 0;
    const at = this.#solid++ % RING;
    this.#places[at] = position;
    this.#skipped[at] = skipped;
    return this.#match(automaton.outputs[state] ?? 0, position + 1, skipped);
  }

  /** From where on bytes must be held, which may still become a match; `end` where there are none. */
  heldFrom(end: number): number {
    const depth = this.#automaton.depths[this.#state] ?? 0;
    return depth === 0 ? end : this.#placeOf(depth);
  }

  /** The same where so much of a pattern's beginning as may be shown is not held. */
  releasedTo(end: number): number {
    const { depths, fallbacks, shortest } = this.#automaton;
    let to = end;
    for (let state = this.#state; state !== 0; state = fallbacks[state] ?? 0) {
      const depth = depths[state] ?? 0;
      const most = Math.min(MOST_RELEASED_BYTES, Math.floor((shortest[state] ?? 0) / RELEASED_PART));
      if (depth > most) to = Math.min(to, this.#placeOf(depth - most));
    }
    return to;
  }

  #match(output: number, to: number, skipped: number): number {
    const { depths, fallbacks, mayBreak, outputs } = this.#automaton;
    for (let whole = output; whole !== 0; whole = outputs[fallbacks[whole] ?? 0] ?? 0) {
      const length = depths[whole] ?? 0;
      const from = this.#placeOf(length);
      const skippedInside = skipped - (this.#skipped[(this.#solid - length) % RING] ?? 0);
      if (to - from - skippedInside === length || mayBreak[whole] === 1) return from;
    }
    return -1;
  }

  /** Where the last so many bytes began that were no line breaks. */
  #placeOf(count: number): number {
    return this.#places[(this.#solid - count) % RING] ?? 0;
  }
}
