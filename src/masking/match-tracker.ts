/**
 * Tracks the automaton's state over a stream and the positions of the bytes that led to it. A masker has two: one of
 * all bytes, and one without colour sequences.
 */
import type { Automaton } from './aho-corasick.ts';
import { LONGEST_PATTERN_BYTES } from './encodings.ts';

const LF = 10;
const CR = 13;
const RING = LONGEST_PATTERN_BYTES + 1;
/** Of a held pattern prefix, at most this many bytes and at most a quarter of the pattern are released early. */
const MOST_RELEASED_BYTES = 8;
const RELEASED_PART = 4;

export class MatchTracker {
  readonly #automaton: Automaton;
  /** Maximum number of consecutive line breaks inside a match, CR and LF counted separately. */
  readonly #mostBreaks: number;
  #state = 0;
  #breaks = 0;
  /** Ring of the positions of the last bytes that are not line breaks; matches and prefixes start at one of them. */
  readonly #places = new Float64Array(RING);
  /** For each of them, the number of bytes skipped before it. */
  readonly #skipped = new Float64Array(RING);
  #solid = 0;

  constructor(automaton: Automaton, mostBreaks: number) {
    this.#automaton = automaton;
    this.#mostBreaks = mostBreaks;
  }

  /** Whether no byte read so far can become part of a match. */
  get isIdle(): boolean {
    return this.#state === 0;
  }

  /** Copies the state of another tracker. */
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

  /**
   * Returns the start of the longest match that ends with this byte, or -1. `skipped`: bytes skipped before it in
   * total.
   */
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

  /** Position from which bytes must be held because they may become a match; `end` if none. */
  heldFrom(end: number): number {
    const depth = this.#automaton.depths[this.#state] ?? 0;
    return depth === 0 ? end : this.#placeOf(depth);
  }

  /** Like `heldFrom`, but releases as much of a pattern prefix as may be shown. */
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

  /** Position of the byte `count` bytes back, line breaks not counted. */
  #placeOf(count: number): number {
    return this.#places[(this.#solid - count) % RING] ?? 0;
  }
}
