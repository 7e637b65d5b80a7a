/**
 * Aho-Corasick automaton: finds many byte patterns in time linear in the input. Immutable once built, so that several
 * maskers share it.
 */
import type { SearchPattern } from './encodings.ts';

const BYTES = 256;

/** State 0 is the start; every other state represents a pattern prefix, the longest one that ends the input so far. */
export class Automaton {
  /** Length of a state's prefix in bytes. */
  readonly depths: Uint8Array;
  /** The state of its longest proper suffix that is a prefix too. */
  readonly fallbacks: Int32Array;
  /** Length of the shortest pattern with this prefix. */
  readonly shortest: Uint8Array;
  /** The nearest state along the fallbacks, including itself, that is a complete pattern; 0 without one. */
  readonly outputs: Int32Array;
  /** For complete patterns: whether a match may contain line breaks. */
  readonly mayBreak: Uint8Array;
  /**
   * The state to continue from: the first along the fallbacks that has children, so that nothing is held back
   * needlessly.
   */
  readonly rests: Int32Array;
  /** Transitions from the start, by byte. */
  readonly #roots = new Int32Array(BYTES);
  /**
   * Transitions from states of depth 1, by both bytes. WHY a table: most input ends there, and these states have the
   * most children.
   */
  readonly #seconds = new Int32Array(BYTES * BYTES);
  readonly #bytes: Uint8Array;
  readonly #children: Int32Array;
  readonly #siblings: Int32Array;
  #size = 1;

  /** Each pattern has 1 to 255 bytes. */
  constructor(patterns: readonly SearchPattern[]) {
    const size = patterns.reduce((sum, { bytes }) => sum + bytes.length, 1);
    this.#bytes = new Uint8Array(size);
    this.#children = new Int32Array(size);
    this.#siblings = new Int32Array(size);
    this.depths = new Uint8Array(size);
    this.fallbacks = new Int32Array(size);
    this.shortest = new Uint8Array(size).fill(255);
    this.outputs = new Int32Array(size);
    this.mayBreak = new Uint8Array(size);
    this.rests = new Int32Array(size);
    for (const pattern of patterns) this.#add(pattern);
    this.#link();
  }

  next(state: number, byte: number): number {
    for (let from = state; from !== 0; from = this.fallbacks[from] ?? 0) {
      const child = this.#child(from, byte);
      if (child !== 0) return child;
    }
    return this.#roots[byte] ?? 0;
  }

  #child(state: number, byte: number): number {
    if (state === 0) return this.#roots[byte] ?? 0;
    if (this.depths[state] === 1) return this.#seconds[((this.#bytes[state] ?? 0) << 8) | byte] ?? 0;
    let child = this.#children[state] ?? 0;
    while (child !== 0 && this.#bytes[child] !== byte) child = this.#siblings[child] ?? 0;
    return child;
  }

  #add({ bytes, mayBreak }: SearchPattern): void {
    let state = 0;
    for (const byte of bytes) {
      state = this.#child(state, byte) || this.#grow(state, byte);
      this.shortest[state] = Math.min(this.shortest[state] ?? 255, bytes.length);
    }
    this.outputs[state] = state;
    if (mayBreak) this.mayBreak[state] = 1;
  }

  #grow(parent: number, byte: number): number {
    const state = this.#size++;
    this.#bytes[state] = byte;
    this.depths[state] = (this.depths[parent] ?? 0) + 1;
    if (parent === 0) this.#roots[byte] = state;
    else {
      if (this.depths[parent] === 1) this.#seconds[((this.#bytes[parent] ?? 0) << 8) | byte] = state;
      this.#siblings[state] = this.#children[parent] ?? 0;
      this.#children[parent] = state;
    }
    return state;
  }

  /** Breadth first: a fallback is shorter and therefore linked earlier. */
  #link(): void {
    const queue = new Int32Array(this.#size);
    let filled = 0;
    for (const root of this.#roots) if (root !== 0) queue[filled++] = root;
    for (let at = 0; at < filled; at++) {
      const state = queue[at] ?? 0;
      const fallback = this.fallbacks[state] ?? 0;
      if (this.outputs[state] === 0) this.outputs[state] = this.outputs[fallback] ?? 0;
      this.rests[state] = this.#children[state] === 0 ? (this.rests[fallback] ?? 0) : state;
      for (let child = this.#children[state] ?? 0; child !== 0; child = this.#siblings[child] ?? 0) {
        this.fallbacks[child] = this.next(fallback, this.#bytes[child] ?? 0);
        queue[filled++] = child;
      }
    }
  }
}
