/**
 * Aho-Corasick automaton: finds many patterns in time linear in the input. Immutable once built, so that several
 * matchers share it. Symbols are bytes, and the two digits of base64 that alphabets write differently.
 */

/** The 63rd and the 64th digit of base64. */
export const DIGIT_62 = 256;
export const DIGIT_63 = 257;
/** What alphabets write for them: standard, for URLs, IMAP, XML names, file names. */
const WRITTEN_62 = '+-.~!*';
const WRITTEN_63 = '/_,-:.~';
const SYMBOLS = 258;
const BYTES = 256;
/** Pairs of bytes at which a match may begin, though not by the two bytes as they are. */
const MAYBE = -1;

export interface SearchPattern {
  readonly symbols: Uint16Array;
  /** Whether a match may contain line breaks. */
  readonly mayBreak: boolean;
}

const DIGITS = [DIGIT_62, DIGIT_63] as const;
const WRITTEN = [WRITTEN_62, WRITTEN_63].map((marks) => Buffer.from(marks));

/** State 0 is the start; every other state represents a pattern prefix, the longest one that ends the input so far. */
export class Automaton {
  /** Length of a state's prefix in symbols. */
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
  /** For each byte, a bit for each of the two digits that it may stand for. 0 if no pattern has them. */
  readonly digits = new Uint8Array(BYTES);
  /** Whether patterns contain bytes beyond ASCII. */
  readonly hasHighBytes: boolean;
  /**
   * For two bytes: the state after them, 0 if no match begins with the first, -1 if one may begin in another way. WHY a
   * table: most input ends there, and the states of depth 1 have the most children.
   */
  readonly pairs: Int32Array;
  readonly #roots = new Int32Array(SYMBOLS);
  readonly #symbols: Uint16Array;
  readonly #children: Int32Array;
  readonly #siblings: Int32Array;
  #size = 1;

  /**
   * Each pattern has 2 to 255 symbols. `openPairs`: pairs of bytes that may begin another spelling of a character;
   * `special`: bytes that may be more than themselves inside a match.
   */
  constructor(patterns: readonly SearchPattern[], openPairs: Int32Array, special: Uint8Array) {
    const size = patterns.reduce((sum, { symbols }) => sum + symbols.length, 1);
    this.pairs = openPairs.slice();
    this.#symbols = new Uint16Array(size);
    this.#children = new Int32Array(size);
    this.#siblings = new Int32Array(size);
    this.depths = new Uint8Array(size);
    this.fallbacks = new Int32Array(size);
    this.shortest = new Uint8Array(size).fill(255);
    this.outputs = new Int32Array(size);
    this.mayBreak = new Uint8Array(size);
    this.rests = new Int32Array(size);
    let [hasHighBytes, used] = [false, 0];
    for (const pattern of patterns) {
      this.#add(pattern);
      for (const symbol of pattern.symbols) {
        hasHighBytes ||= symbol >= 0x80 && symbol < BYTES;
        if (symbol >= BYTES) used |= 1 << (symbol - BYTES);
      }
    }
    this.hasHighBytes = hasHighBytes;
    for (const [at, marks] of WRITTEN.entries())
      for (const byte of marks) this.digits[byte] = (this.digits[byte] ?? 0) | (used & (1 << at));
    this.#link();
    this.#markPairs(special);
  }

  next(state: number, symbol: number): number {
    for (let from = state; from !== 0; from = this.fallbacks[from] ?? 0) {
      const child = this.child(from, symbol);
      if (child !== 0) return child;
    }
    return this.#roots[symbol] ?? 0;
  }

  child(state: number, symbol: number): number {
    if (state === 0) return this.#roots[symbol] ?? 0;
    const first = this.#symbols[state] ?? 0;
    if (this.depths[state] === 1 && first < BYTES && symbol < BYTES) {
      const pair = this.pairs[(first << 8) | symbol] ?? 0;
      if (pair !== MAYBE) return pair;
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
      const pair = (first << 8) | symbol;
      const isPair = this.depths[parent] === 1 && first < BYTES && symbol < BYTES;
      if (isPair && this.pairs[pair] !== MAYBE) this.pairs[pair] = state;
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
        this.fallbacks[child] = this.next(fallback, this.#symbols[child] ?? 0);
        queue[filled++] = child;
      }
    }
  }

  /** Marks the pairs with which a match may begin, and not as they are. */
  #markPairs(special: Uint8Array): void {
    for (let first = 0; first < BYTES; first++) {
      const digits = DIGITS.filter((_, at) => ((this.digits[first] ?? 0) & (1 << at)) !== 0);
      const roots = [first, ...digits].map((symbol) => this.#roots[symbol] ?? 0).filter((root) => root !== 0);
      if (roots.length === 0) continue;
      for (let second = 0; second < BYTES; second++) {
        const isMore = special[second] === 1 || this.digits[second] !== 0;
        const isOther = roots.some((root) => root !== this.#roots[first] && this.child(root, second) !== 0);
        if (isMore || isOther) this.pairs[(first << 8) | second] = MAYBE;
      }
    }
  }
}
