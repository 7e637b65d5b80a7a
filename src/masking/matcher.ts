/**
 * Finds the patterns in a stream of bytes, however their characters are written: it walks the automaton along every
 * reading of the bytes. Line breaks, zero bytes and colours inside a match are skipped. Time and memory per byte are
 * bounded for all values and bytes. The matches do not depend on how the stream was divided.
 */
import { type Automaton, DIGIT_62, DIGIT_63 } from './aho-corasick.ts';
import { CR, LF } from './spelling-tables.ts';
import { CODE_POINT_BASE, COLOUR, Spellings } from './spellings.ts';

/** States that are kept at a position; if there are more, the deepest are kept. */
const MAX_STATES = 8;
/** Positions that are remembered, as many as for the spellings. A power of two. */
const SLOTS = 64;
/** Characters whose places are remembered: the characters of every kept state. A power of two. */
const NODES = 2048;
/** How many zero bytes and colours may follow each other inside a match. */
const MAX_SKIPPED = 16;
/** Bytes of indentation, or of other marks of quoted lines, after a line break inside a match. */
const MAX_PREFIX_BYTES = 40;
const IS_PREFIX = new Uint8Array(256);
for (const byte of Buffer.from(' \t>+*#|/-')) IS_PREFIX[byte] = 1;
/** The beginning of a message line in an event stream. */
const DATA = Buffer.from('data:');
/** Limits for the early release of a held pattern prefix: bytes, and the share of the pattern's length. */
const MOST_RELEASED_BYTES = 8;
const RELEASED_PART = 4;

/** Positions in a line: 0 within it, 1 after a line break and its marks, from 2 on the characters of `data:`. */
const [IN_LINE, AT_LINE_START] = [0, 1];

/** Called with the positions of a match; `to` is exclusive. */
export type MatchHandler = (from: number, to: number) => void;

export class Matcher {
  readonly #automaton: Automaton;
  readonly #mostBreaks: number;
  readonly #spellings = new Spellings();
  /** States by position. Positions are 32-bit integers that wrap. */
  readonly #positions = new Int32Array(SLOTS).fill(-1);
  readonly #counts = new Uint8Array(SLOTS);
  readonly #states = new Int32Array(SLOTS * MAX_STATES);
  /** The last character of each state; -1 if there is none. */
  readonly #nodes = new Int32Array(SLOTS * MAX_STATES);
  /** Counts since that character: line breaks, skipped bytes, and the state's position in its line. */
  readonly #breaks = new Uint8Array(SLOTS * MAX_STATES);
  readonly #skipped = new Uint8Array(SLOTS * MAX_STATES);
  readonly #modes = new Uint8Array(SLOTS * MAX_STATES);
  /**
   * The previous character of each, its start, the number of characters before it in its line, and the number covered.
   */
  readonly #previous = new Int32Array(NODES);
  readonly #starts = new Int32Array(NODES);
  readonly #runs = new Uint8Array(NODES);
  readonly #covered = new Uint8Array(NODES);
  #lastNode = 0;
  /** The position after the last byte, and its slot. */
  #at = 0;
  #slot = 0;
  #isBroken = false;
  #steps = 0;
  /** Reports how many of the last bytes are a match. */
  #onMatch: (bytes: number) => void = () => undefined;

  /** `mostBreaks`: maximum number of consecutive line breaks inside a match, CR and LF counted separately. */
  constructor(automaton: Automaton, mostBreaks: number) {
    this.#automaton = automaton;
    this.#mostBreaks = mostBreaks;
  }

  get steps(): number {
    return this.#steps + this.#spellings.steps;
  }

  /** Whether no byte read so far can become part of a match. */
  get #isIdle(): boolean {
    return this.#counts[this.#slot] === 0 && !this.#spellings.isOpen;
  }

  /** Reads the bytes, of which the first is at the position, and reports matches by position. */
  read(bytes: Uint8Array, position: number, onMatch: MatchHandler): void {
    let at = 0;
    this.#onMatch = (bytes) => onMatch(position + at + 1 - bytes, position + at + 1);
    while (at < bytes.length) {
      if (this.#isIdle) {
        at = this.#skip(bytes, at, position);
        if (at === bytes.length) return;
      }
      this.#step(bytes[at] ?? 0, (position + at) | 0);
      at++;
    }
  }

  reset(): void {
    this.#positions.fill(-1);
    this.#counts.fill(0);
    this.#spellings.reset();
  }

  /** The position of the next byte at which a match or a spelling may begin. */
  #skip(bytes: Uint8Array, from: number, position: number): number {
    const automaton = this.#automaton;
    const { pairs } = automaton;
    const last = bytes.length - 1;
    let at = from;
    let byte = bytes[at] ?? 0;
    while (at < last) {
      const next = bytes[at + 1] ?? 0;
      if (pairs[(byte << 8) | next] === 1 && automaton.mayBegin(bytes, at)) break;
      byte = next;
      at++;
    }
    if (at > from) {
      this.#at = (position + at) | 0;
      this.#slot = this.#at & (SLOTS - 1);
      this.#positions[this.#slot] = this.#at;
      this.#counts[this.#slot] = 0;
    }
    this.#steps += at - from;
    return at;
  }

  #step(byte: number, position: number): void {
    const spellings = this.#spellings;
    spellings.read(byte, position);
    this.#at = (position + 1) | 0;
    this.#slot = this.#at & (SLOTS - 1);
    this.#positions[this.#slot] = this.#at;
    this.#counts[this.#slot] = 0;
    for (let index = 0; index < spellings.count; index++) {
      const character = spellings.characters[index] ?? 0;
      const start = spellings.starts[index] ?? 0;
      if (character === LF || character === CR || character === 0 || character === COLOUR) this.#pass(start, character);
      else {
        this.#isBroken = spellings.broken[index] === 1;
        this.#consume(start, character);
      }
    }
  }

  /** Carries every state at the reading's start over a line break, a zero byte or a colour. */
  #pass(start: number, character: number): void {
    const slot = start & (SLOTS - 1);
    if (this.#positions[slot] !== start) return;
    const isBreak = character === LF || character === CR;
    for (let place = slot * MAX_STATES, left = this.#counts[slot] ?? 0; left > 0; place++, left--) {
      this.#steps++;
      const breaks = (this.#breaks[place] ?? 0) + (isBreak ? 1 : 0);
      const skipped = isBreak ? 0 : (this.#skipped[place] ?? 0) + 1;
      if (breaks > this.#mostBreaks || skipped > MAX_SKIPPED) continue;
      const mode = isBreak ? AT_LINE_START : (this.#modes[place] ?? 0);
      this.#carry(place, breaks, skipped, mode);
    }
  }

  #carry(place: number, breaks: number, skipped: number, mode: number): void {
    const added = this.#place(this.#states[place] ?? 0, mode, -1, 0);
    if (added < 0) return;
    this.#nodes[added] = this.#nodes[place] ?? 0;
    this.#breaks[added] = breaks;
    this.#skipped[added] = skipped;
  }

  #consume(start: number, character: number): void {
    const slot = start & (SLOTS - 1);
    const isKnown = this.#positions[slot] === start;
    let isRootDone = false;
    if (isKnown) {
      for (let place = slot * MAX_STATES, left = this.#counts[slot] ?? 0; left > 0; place++, left--) {
        const mode = this.#modes[place] ?? 0;
        if (mode > AT_LINE_START && mode <= DATA.length) this.#continueData(place, mode, character);
        else {
          // The fallbacks of a state include the states that begin here.
          isRootDone = true;
          this.#extend(this.#states[place] ?? 0, this.#nodes[place] ?? 0, place, start, character);
          if (mode === AT_LINE_START) this.#continuePrefix(place, character);
        }
      }
    }
    if (!isRootDone) this.#extend(0, -1, -1, start, character);
  }

  /** Carries a state over indentation, or over the marks of a quoted or commented line. */
  #continuePrefix(place: number, character: number): void {
    const skipped = (this.#skipped[place] ?? 0) + 1;
    const breaks = this.#breaks[place] ?? 0;
    if (skipped <= MAX_PREFIX_BYTES && character < 256 && IS_PREFIX[character] === 1)
      this.#carry(place, breaks, skipped, AT_LINE_START);
    else if (character === DATA[0]) this.#carry(place, breaks, 0, AT_LINE_START + 1);
  }

  #continueData(place: number, mode: number, character: number): void {
    if (character !== DATA[mode - AT_LINE_START]) return;
    const next = mode + 1 > DATA.length ? AT_LINE_START : mode + 1;
    this.#carry(place, this.#breaks[place] ?? 0, 0, next);
  }

  /** Advances a state over a character; `place` is where it is stored, -1 for the start. */
  #extend(state: number, node: number, place: number, start: number, character: number): void {
    const automaton = this.#automaton;
    if (character >= CODE_POINT_BASE) {
      if (automaton.hasHighBytes) this.#extendBytes(state, node, place, start, character - CODE_POINT_BASE);
      return;
    }
    this.#arrive(automaton.next(state, character), node, place, start);
    const digits = automaton.digits[character] ?? 0;
    if (digits === 0) return;
    if ((digits & 1) !== 0) this.#arrive(automaton.next(state, DIGIT_62), node, place, start);
    if ((digits & 2) !== 0) this.#arrive(automaton.next(state, DIGIT_63), node, place, start);
  }

  /**
   * Advances a state over a character beyond ASCII, as its bytes. Half of a UTF-16 pair is encoded as in the patterns.
   */
  #extendBytes(state: number, node: number, place: number, start: number, codePoint: number): void {
    const count = codePoint < 0x800 ? 2 : codePoint < 0x1_0000 ? 3 : 4;
    let [at, last] = [state, node];
    for (let index = 0; index < count; index++) {
      const bits = (codePoint >> (6 * (count - 1 - index))) & 0x3f;
      const first = [0, 0, 0xc0, 0xe0, 0xf0][count] ?? 0;
      const next = this.#automaton.next(at, index === 0 ? first | bits : 0x80 | bits);
      this.#steps++;
      if (index === count - 1) this.#arrive(next, last, index === 0 ? place : -1, start);
      else {
        last = this.#addNode(last, start, this.#runAfter(last, index === 0 ? place : -1));
        at = this.#automaton.rests[next] ?? 0;
      }
    }
  }

  #arrive(state: number, node: number, place: number, start: number): void {
    this.#steps++;
    if (state === 0) return;
    const { rests, outputs } = this.#automaton;
    const output = outputs[state] ?? 0;
    const rest = rests[state] ?? 0;
    const run = this.#isBroken ? 0 : this.#runAfter(node, place);
    const added = rest === 0 ? -1 : this.#place(rest, IN_LINE, run, start);
    if (added < 0 && output === 0) return;
    const own = this.#addNode(node, start, run);
    if (added >= 0) {
      this.#nodes[added] = own;
      this.#breaks[added] = 0;
      this.#skipped[added] = 0;
    }
    if (output !== 0) this.#report(output, own, run);
  }

  /** Number of consecutive characters, including the next one, without a line break in between. */
  #runAfter(node: number, place: number): number {
    if (node < 0 || (place >= 0 && (this.#breaks[place] ?? 0) > 0)) return 1;
    return Math.min(255, (this.#runs[node & (NODES - 1)] ?? 0) + 1);
  }

  #addNode(previous: number, start: number, run: number): number {
    const node = (this.#lastNode + 1) & 0x7fffffff;
    this.#lastNode = node;
    const at = node & (NODES - 1);
    this.#previous[at] = previous;
    this.#starts[at] = start;
    this.#runs[at] = run;
    this.#covered[at] = 0;
    return node;
  }

  /**
   * A place for the state at the position, or -1. Among equal states, one that was not carried here is kept. Next comes
   * the one with more characters since a line break, then the one whose last character begins first. `run` is -1 for a
   * carried state.
   */
  #place(state: number, mode: number, run: number, start: number): number {
    const base = this.#slot * MAX_STATES;
    const count = this.#counts[this.#slot] ?? 0;
    for (let place = base; place < base + count; place++) {
      if (this.#states[place] !== state || this.#modes[place] !== mode) continue;
      if (run < 0) return -1;
      if ((this.#breaks[place] ?? 0) > 0 || (this.#skipped[place] ?? 0) > 0) return place;
      const node = (this.#nodes[place] ?? 0) & (NODES - 1);
      const ownRun = this.#runs[node] ?? 0;
      if (ownRun !== run) return run > ownRun ? place : -1;
      return ((start - (this.#starts[node] ?? 0)) | 0) < 0 ? place : -1;
    }
    let place = base + count;
    if (count === MAX_STATES) {
      const { depths } = this.#automaton;
      place = base;
      for (let other = base + 1; other < base + count; other++)
        if ((depths[this.#states[other] ?? 0] ?? 0) < (depths[this.#states[place] ?? 0] ?? 0)) place = other;
      if ((depths[this.#states[place] ?? 0] ?? 0) >= (depths[state] ?? 0)) return -1;
    } else this.#counts[this.#slot] = count + 1;
    this.#states[place] = state;
    this.#modes[place] = mode;
    return place;
  }

  /** Reports the longest pattern that ends here. A shorter pattern with a line break inside would be a coincidence. */
  #report(output: number, node: number, run: number): void {
    const { depths, fallbacks, mayBreak, outputs } = this.#automaton;
    for (let whole = output; whole !== 0; whole = outputs[fallbacks[whole] ?? 0] ?? 0) {
      this.#steps++;
      const length = depths[whole] ?? 0;
      if (mayBreak[whole] !== 1 && run < length) continue;
      this.#onMatch((this.#at - this.#startOf(node, length, true)) | 0);
      return;
    }
  }

  /**
   * The position at which the last `length` characters begin. For covering, going back to the part that is already
   * covered is sufficient, so the total time is linear.
   */
  #startOf(last: number, length: number, isCovering: boolean): number {
    let node = last;
    for (let left = length; ; left--) {
      this.#steps++;
      const at = node & (NODES - 1);
      if (isCovering) {
        if ((this.#covered[at] ?? 0) >= left) break;
        this.#covered[at] = left;
      }
      const previous = this.#previous[at] ?? -1;
      const isLost = previous < 0 || ((this.#lastNode - previous) & 0x7fffffff) >= NODES;
      if (left === 1 || isLost) break;
      node = previous;
    }
    return this.#starts[node & (NODES - 1)] ?? 0;
  }

  /** How many of the last bytes must be held because they may become part of a match. */
  heldBytes(): number {
    return this.#isIdle ? 0 : this.#held(false);
  }

  /** Returns `heldBytes` less the part of a pattern prefix that may be shown. */
  heldWhenQuiet(): number {
    return this.#isIdle ? 0 : this.#held(true);
  }

  /**
   * Goes back over the positions from which a state may continue: the last position, and the beginnings of open
   * spellings.
   */
  #held(isQuiet: boolean): number {
    const isSequenceShown = isQuiet && !this.#spellings.isInSequence;
    const begins = new Int32Array(SLOTS);
    const isReached = new Uint8Array(SLOTS);
    isReached[this.#slot] = 1;
    let held = 0;
    for (let back = 0; back < SLOTS; back++) {
      const position = (this.#at - back) | 0;
      const slot = position & (SLOTS - 1);
      if (isReached[slot] === 0) continue;
      if (back > 0 && !isSequenceShown) held = Math.max(held, back);
      if (this.#positions[slot] === position)
        for (let place = slot * MAX_STATES, left = this.#counts[slot] ?? 0; left > 0; place++, left--)
          held = Math.max(held, this.#heldBy(place, isQuiet));
      for (let count = this.#spellings.openAt(position, begins); count > 0; count--) {
        const begin = begins[count - 1] ?? 0;
        if (((this.#at - begin) | 0) < SLOTS) isReached[begin & (SLOTS - 1)] = 1;
      }
    }
    return held;
  }

  #heldBy(place: number, isQuiet: boolean): number {
    const { depths, fallbacks, shortest } = this.#automaton;
    let held = 0;
    for (let state = this.#states[place] ?? 0; state !== 0; state = fallbacks[state] ?? 0) {
      const depth = depths[state] ?? 0;
      const most = isQuiet ? Math.min(MOST_RELEASED_BYTES, Math.floor((shortest[state] ?? 0) / RELEASED_PART)) : 0;
      if (depth > most)
        held = Math.max(held, (this.#at - this.#startOf(this.#nodes[place] ?? 0, depth - most, false)) | 0);
      if (!isQuiet) break;
    }
    return held;
  }
}
