/**
 * Replaces every byte of a stream that belongs to a pattern: each unbroken run of them by one `[secret]`. What comes out does not depend
 * on how the stream was cut. It holds back what may still become a match, and nothing else.
 */
import type { Automaton } from './automaton.ts';
import { LONGEST_PATTERN_BYTES } from './forms.ts';

export const MASK = '[secret]';
const MASK_BYTES = Buffer.from(MASK);
const LF = 10;
const CR = 13;
const RING = LONGEST_PATTERN_BYTES + 1;
/** Of a pattern's beginning that waits: a quarter of it, and no more than this, may be shown before it is known what follows. */
const MOST_RELEASED_BYTES = 8;
const RELEASED_PART = 4;

/** Where matches lie, in positions of the stream from 0; the end is not part of it. */
interface Run {
  from: number;
  readonly to: number;
}

export class Masker {
  readonly #automaton: Automaton;
  /** How many line breaks (CR and LF counted each) in a row a match may have inside. */
  readonly #mostBreaks: number;
  #state = 0;
  #breaks = 0;
  /** Positions of the last bytes that were no line breaks, by their number modulo the length: where matches and beginnings start. */
  readonly #places = new Float64Array(RING);
  #solid = 0;
  /** What was read and not yet given out, and its position. */
  #held: Uint8Array = new Uint8Array(0);
  #given = 0;
  /** Behind the last byte that was masked: a run that goes on there gets no second mask. */
  #maskedTo = -1;
  #runs: Run[] = [];

  constructor(automaton: Automaton, mostBreaks: number) {
    this.#automaton = automaton;
    this.#mostBreaks = mostBreaks;
  }

  /** Whether something was read that was not given out. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /** The next bytes; answers what is settled by them. */
  write(chunk: Uint8Array): Uint8Array {
    const start = this.#given + this.#held.length;
    for (let at = 0; at < chunk.length; at++) this.#read(chunk[at] ?? 0, start + at);
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const depth = this.#automaton.depths[this.#state] ?? 0;
    return this.#give(depth === 0 ? start + chunk.length : this.#placeOf(depth));
  }

  /**
   * For a stream that has gone quiet, such as a prompt. Answers what is held but for what would show more of a value's beginning than a
   * quarter of it or 8 bytes. INVARIANT: if the value is completed later, the rest of it is masked: it never comes out whole.
   */
  release(): Uint8Array {
    const { depths, fallbacks, shortest } = this.#automaton;
    let to = this.#given + this.#held.length;
    for (let state = this.#state; state !== 0; state = fallbacks[state] ?? 0) {
      const depth = depths[state] ?? 0;
      const most = Math.min(MOST_RELEASED_BYTES, Math.floor((shortest[state] ?? 0) / RELEASED_PART));
      if (depth > most) to = Math.min(to, this.#placeOf(depth - most));
    }
    return this.#give(to);
  }

  /** The stream has ended: what is held can't become a match any more. */
  end(): Uint8Array {
    this.#state = 0;
    return this.#give(this.#given + this.#held.length);
  }

  #read(byte: number, position: number): void {
    const automaton = this.#automaton;
    if (byte === LF || byte === CR) {
      if (this.#state !== 0 && ++this.#breaks > this.#mostBreaks) this.#state = 0;
      return;
    }
    const state = automaton.next(this.#state, byte);
    if (state === 0) {
      this.#state = 0;
      return;
    }
    this.#breaks = 0;
    this.#places[this.#solid++ % RING] = position;
    this.#match(automaton.outputs[state] ?? 0, position + 1);
    this.#state = automaton.rests[state] ?? 0;
  }

  /** Covers the longest pattern that ends here. */
  #match(output: number, to: number): void {
    const { depths, fallbacks, mayBreak, outputs } = this.#automaton;
    for (let whole = output; whole !== 0; whole = outputs[fallbacks[whole] ?? 0] ?? 0) {
      const length = depths[whole] ?? 0;
      const from = this.#placeOf(length);
      if (to - from === length || mayBreak[whole] === 1) {
        this.#cover(from, to);
        return;
      }
    }
  }

  #cover(from: number, to: number): void {
    const run: Run = { from, to };
    for (let last = this.#runs.at(-1); last !== undefined && last.to >= from; last = this.#runs.at(-1)) {
      run.from = Math.min(run.from, last.from);
      this.#runs.pop();
    }
    this.#runs.push(run);
  }

  /** Where the last so many bytes began that were no line breaks. */
  #placeOf(count: number): number {
    return this.#places[(this.#solid - count) % RING] ?? 0;
  }

  /** Gives out up to the position, and the whole of a run that has begun by then: it stays masked whatever follows. */
  #give(to: number): Uint8Array {
    const pieces: Uint8Array[] = [];
    const origin = this.#given;
    let at = origin;
    let index = 0;
    for (;;) {
      const run = this.#runs[index];
      if (run !== undefined && run.from <= at) {
        if (this.#maskedTo !== at) pieces.push(MASK_BYTES);
        at = run.to;
        this.#maskedTo = at;
        index++;
        continue;
      }
      const stop = Math.min(to, run?.from ?? to);
      if (stop <= at) break;
      pieces.push(this.#held.subarray(at - origin, stop - origin));
      at = stop;
    }
    this.#runs = index === 0 ? this.#runs : this.#runs.slice(index);
    // WHY a copy: the caller may use its chunk again, and a few bytes should not keep a large one.
    this.#held = new Uint8Array(this.#held.subarray(at - origin));
    this.#given = at;
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  }
}
