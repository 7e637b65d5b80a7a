/**
 * Aho-Corasick automaton: finds many patterns in time linear in the input. Immutable once built, so that several
 * matchers share it. Symbols are bytes, and the two digits of base64 that alphabets write differently.
 */
import { OPEN_PAIRS, PASSED_OVER, PLAIN_PAIRS, SPECIAL } from './spelling-tables.ts';

/** The 63rd and the 64th digit of base64. */
export const DIGIT_62 = 256;
export const DIGIT_63 = 257;
/** The characters that alphabets use for them: standard, URL-safe, IMAP, XML names, file names. */
const WRITTEN_62 = '+-.~!*';
const WRITTEN_63 = '/_,-:.~';
const SYMBOLS = 258;
const BYTES = 256;
/** Bytes that are checked before the matcher is called. */
const MAX_LOOKED_AT = 6;
const SPACE = 0x20;
const PLUS = 0x2b;
const UNDERSCORE = 0x5f;
/** Automatons of this size or larger store a table of the transitions from states of depth 1. */
const LARGE_SIZE = 16_384;

/** The symbols that are built in about a millisecond. */
const PIECE_SYMBOLS = 4096;

export interface SearchPattern {
  readonly symbols: Uint16Array;
  readonly mayBreak: boolean;
}

const DIGITS = [DIGIT_62, DIGIT_63] as const;
const WRITTEN = [WRITTEN_62, WRITTEN_63].map((marks) => Buffer.from(marks));

/** State 0 is the start. Every other state represents a pattern prefix, the longest one that ends the input so far. */
export class Automaton {
  /** Length of a state's prefix in symbols. */
  readonly depths: Uint8Array;
  /** The state of the longest proper suffix that is also a prefix. */
  readonly fallbacks: Int32Array;
  /** Length of the shortest pattern with this prefix. */
  readonly shortest: Uint8Array;
  /** The nearest state along the fallbacks, including itself, that is a complete pattern; 0 if there is none. */
  readonly outputs: Int32Array;
  /** Whether a match may contain line breaks, for complete patterns. */
  readonly mayBreak: Uint8Array;
  /**
   * The state to continue from: the first along the fallbacks that has children. This avoids holding back bytes
   * needlessly.
   */
  readonly rests: Int32Array;
  /** A bit for each of the two digits that a byte may stand for; 0 if no pattern contains them. */
  readonly digits = new Uint8Array(BYTES);
  /** Whether patterns contain bytes beyond ASCII. */
  readonly hasHighBytes: boolean;
  /**
   * Table of byte pairs: 1 if a match may begin with the first byte, otherwise 0. WHY: the search of most input ends
   * there.
   */
  readonly pairs: Uint8Array;
  /** Table of byte pairs: the state after the pair. */
  readonly #seconds: Int32Array | null;
  readonly #roots = new Int32Array(SYMBOLS);
  readonly #symbols: Uint16Array;
  /**
   * The nearest state along the fallbacks that may have a transition which the state lacks. WHY: a periodic pattern
   * would otherwise cost a step for each period.
   */
  readonly #retries: Int32Array;
  readonly #children: Int32Array;
  readonly #siblings: Int32Array;
  #size = 1;

  get size(): number {
    return this.#size;
  }

  /**
   * Builds the automaton in pieces of about a millisecond, and yields between them. Each pattern has 2 to 255 symbols.
   */
  static *build(patterns: readonly SearchPattern[]): Generator<undefined, Automaton> {
    const automaton = new Automaton(patterns);
    let symbols = 0;
    for (const pattern of patterns) {
      automaton.#add(pattern);
      symbols += pattern.symbols.length;
      if (symbols < PIECE_SYMBOLS) continue;
      symbols = 0;
      yield;
    }
    yield* automaton.#link();
    automaton.#markPairs();
    return automaton;
  }

  private constructor(patterns: readonly SearchPattern[]) {
    const size = patterns.reduce((sum, { symbols }) => sum + symbols.length, 1);
    this.#seconds = size > LARGE_SIZE ? new Int32Array(BYTES * BYTES) : null;
    this.#symbols = new Uint16Array(size);
    this.#retries = new Int32Array(size);
    this.#children = new Int32Array(size);
    this.#siblings = new Int32Array(size);
    this.depths = new Uint8Array(size);
    this.fallbacks = new Int32Array(size);
    this.shortest = new Uint8Array(size).fill(255);
    this.outputs = new Int32Array(size);
    this.mayBreak = new Uint8Array(size);
    this.rests = new Int32Array(size);
    let [hasHighBytes, used] = [false, 0];
    for (const { symbols } of patterns)
      for (const symbol of symbols) {
        hasHighBytes ||= symbol >= 0x80 && symbol < BYTES;
        if (symbol >= BYTES) used |= 1 << (symbol - BYTES);
      }
    this.hasHighBytes = hasHighBytes;
    for (const [at, marks] of WRITTEN.entries())
      for (const byte of marks) this.digits[byte] = (this.digits[byte] ?? 0) | (used & (1 << at));
    this.pairs = OPEN_PAIRS.slice();
  }

  next(state: number, symbol: number): number {
    for (let from = state; from !== 0; from = this.#retries[from] ?? 0) {
      const child = this.child(from, symbol);
      if (child !== 0) return child;
    }
    return this.#roots[symbol] ?? 0;
  }

  child(state: number, symbol: number): number {
    if (state === 0) return this.#roots[symbol] ?? 0;
    if (this.#seconds !== null && this.depths[state] === 1) {
      const first = this.#symbols[state] ?? 0;
      if (first < BYTES && symbol < BYTES) return this.#seconds[(first << 8) | symbol] ?? 0;
    }
    let child = this.#children[state] ?? 0;
    while (child !== 0 && this.#symbols[child] !== symbol) child = this.#siblings[child] ?? 0;
    return child;
  }

  #add({ symbols, mayBreak }: SearchPattern): void {
    let state = 0;
    for (const symbol of symbols) {
      state = this.child(state, symbol) || this.#grow(state, symbol);
      this.shortest[state] = Math.min(this.shortest[state] ?? 255, symbols.length);
    }
    this.outputs[state] = state;
    if (mayBreak) this.mayBreak[state] = 1;
  }

  #grow(parent: number, symbol: number): number {
    const state = this.#size++;
    const first = this.#symbols[parent] ?? 0;
    this.#symbols[state] = symbol;
    this.depths[state] = (this.depths[parent] ?? 0) + 1;
    if (parent === 0) this.#roots[symbol] = state;
    else {
      const isPair = this.depths[parent] === 1 && first < BYTES && symbol < BYTES;
      if (this.#seconds !== null && isPair) this.#seconds[(first << 8) | symbol] = state;
      this.#siblings[state] = this.#children[parent] ?? 0;
      this.#children[parent] = state;
    }
    return state;
  }

  /** Links the states breadth first: a fallback is shorter and therefore linked earlier. */
  *#link(): Generator<undefined, void> {
    const queue = new Int32Array(this.#size);
    let filled = 0;
    for (const root of this.#roots) if (root !== 0) queue[filled++] = root;
    for (let at = 0; at < filled; at++) {
      if (at % PIECE_SYMBOLS === PIECE_SYMBOLS - 1) yield;
      const state = queue[at] ?? 0;
      const fallback = this.fallbacks[state] ?? 0;
      this.#retries[state] = this.#hasSameChild(state, fallback) ? (this.#retries[fallback] ?? 0) : fallback;
      if (this.outputs[state] === 0) this.outputs[state] = this.outputs[fallback] ?? 0;
      this.rests[state] = this.#children[state] === 0 ? (this.rests[fallback] ?? 0) : state;
      for (let child = this.#children[state] ?? 0; child !== 0; child = this.#siblings[child] ?? 0) {
        this.fallbacks[child] = this.next(fallback, this.#symbols[child] ?? 0);
        queue[filled++] = child;
      }
    }
  }

  /** Whether both states have exactly one child, by the same symbol. */
  #hasSameChild(state: number, other: number): boolean {
    const [child, same] = [this.#children[state] ?? 0, this.#children[other] ?? 0];
    if (child === 0 || same === 0 || other === 0 || this.#siblings[child] !== 0 || this.#siblings[same] !== 0)
      return false;
    return this.#symbols[child] === this.#symbols[same];
  }

  /** Whether a match may begin at the place, which is not the last. INVARIANT: false only if none begins there. */
  mayBegin(bytes: Uint8Array, place: number): boolean {
    const first = bytes[place] ?? 0;
    if (OPEN_PAIRS[(first << 8) | (bytes[place + 1] ?? 0)] === 1 || this.digits[first] !== 0) return true;
    let state = this.#roots[first] ?? 0;
    for (let at = place + 1; at < bytes.length && at < place + MAX_LOOKED_AT; at++) {
      const byte = bytes[at] ?? 0;
      if (this.digits[byte] !== 0 || (SPECIAL[byte] !== 0 && this.#mayBeOther(state, byte, bytes[at + 1]))) return true;
      state = this.child(state, byte);
      if (state === 0) return false;
      if (this.outputs[state] !== 0) return true;
    }
    return true;
  }

  /** Whether a match may continue with another reading of the byte. `next` is undefined where it is unknown. */
  #mayBeOther(state: number, byte: number, next: number | undefined): boolean {
    if (next === undefined || SPECIAL[byte] === PASSED_OVER || OPEN_PAIRS[(byte << 8) | next] === 1) return true;
    return (byte === PLUS || byte === UNDERSCORE) && this.child(state, SPACE) !== 0;
  }

  /** Marks the byte pairs with which a match may begin. */
  #markPairs(): void {
    for (const pair of PLAIN_PAIRS) if (!this.#isRoot(pair & 255)) this.pairs[pair] = 0;
    for (let first = 0; first < BYTES; first++) {
      if (!this.#isRoot(first)) continue;
      const row = first << 8;
      // Any byte may follow: a line may be wrapped there, or the next character may be written in another way.
      for (let second = 0; second < BYTES; second++)
        if (SPECIAL[second] !== 0 || this.digits[second] !== 0) this.pairs[row | second] = 1;
      for (const root of [first, ...DIGITS].map((symbol) => this.#roots[symbol] ?? 0))
        for (let child = this.#children[root] ?? 0; root !== 0 && child !== 0; child = this.#siblings[child] ?? 0) {
          const symbol = this.#symbols[child] ?? 0;
          if (symbol < BYTES) this.pairs[row | symbol] = 1;
        }
    }
  }

  /** Whether a pattern may begin with the byte, or with a digit that it stands for. */
  #isRoot(byte: number): boolean {
    const digits = this.digits[byte] ?? 0;
    return (
      this.#roots[byte] !== 0 || DIGITS.some((digit, at) => (digits & (1 << at)) !== 0 && this.#roots[digit] !== 0)
    );
  }
}
