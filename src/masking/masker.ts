/**
 * Replaces every byte of a stream that belongs to a pattern: each unbroken run of them by one `[secret]`. What comes out does not depend
 * on how the stream was cut. It holds back what may still become a match, and nothing else.
 */
import type { Automaton } from './aho-corasick.ts';
import { MatchTracker } from './match-tracker.ts';

export const MASK = '[secret]';
const MASK_BYTES = Buffer.from(MASK);
const ESC = 0x1b;
/** Of a colouring sequence, ESC and all; longer ones are text. */
const LONGEST_SEQUENCE_BYTES = 40;
/** In a row, inside a match: nobody needs more, and what is held stays small. */
const MOST_SEQUENCES = 16;

/** Where matches lie, in positions of the stream from 0; the end is not part of it. */
interface Run {
  from: number;
  readonly to: number;
}

export class Masker {
  /** Of the bytes as they are. */
  readonly #literal: MatchTracker;
  /** Without the sequences that colour what stands between them, as highlighting puts them into a value; else they are the same. */
  readonly #shown: MatchTracker;
  #isShownApart = false;
  /** Bytes of sequences since the two went apart, how many of them came last without anything between, and one that is not whole yet. */
  #skipped = 0;
  #sequences = 0;
  readonly #sequence: number[] = [];
  /** What was read and not yet given out, and its position. */
  #held: Uint8Array = new Uint8Array(0);
  #given = 0;
  /** Behind the last byte that was masked: a run that goes on there gets no second mask. */
  #maskedTo = -1;
  #runs: Run[] = [];

  /** `mostBreaks`: how many line breaks (CR and LF counted each) in a row a match may have inside. */
  constructor(automaton: Automaton, mostBreaks: number) {
    this.#literal = new MatchTracker(automaton, mostBreaks);
    this.#shown = new MatchTracker(automaton, mostBreaks);
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
    const held = this.#literal.heldFrom(start + chunk.length);
    return this.#give(this.#isShownApart ? this.#shown.heldFrom(held) : held);
  }

  /**
   * For a stream that has gone quiet, such as a prompt. Answers what is held but for what would show more of a value's beginning than a
   * quarter of it or 8 bytes. INVARIANT: if the value is completed later, the rest of it is masked: it never comes out whole.
   */
  release(): Uint8Array {
    const to = this.#literal.releasedTo(this.#given + this.#held.length);
    // Half a sequence before a mask would make one with its beginning.
    return this.#give(this.#isShownApart ? this.#shown.releasedTo(to - this.#sequence.length) : to);
  }

  /** The stream has ended: what is held can't become a match any more. */
  end(): Uint8Array {
    this.#literal.reset();
    this.#isShownApart = false;
    return this.#give(this.#given + this.#held.length);
  }

  /** WHY sequences that no beginning stands before are text: a value may hold them. So a match may begin inside one, which masks more. */
  #read(byte: number, position: number): void {
    if (byte === ESC && !this.#isShownApart && !this.#literal.isIdle) {
      this.#shown.follow(this.#literal);
      this.#isShownApart = true;
      this.#skipped = 0;
      this.#sequences = 0;
      this.#sequence.length = 0;
    }
    this.#cover(this.#literal.read(byte, position, 0), position + 1);
    if (this.#isShownApart) this.#readShown(byte, position);
  }

  #readShown(byte: number, position: number): void {
    const sequence = this.#sequence;
    if (sequence.length === 0 && byte !== ESC) this.#show(byte, position);
    else if (goesOn(sequence, byte)) sequence.push(byte);
    else if (sequence.length >= 2 && (byte === 0x6d || byte === 0x4b)) {
      this.#skipped += sequence.length + 1;
      sequence.length = 0;
      if (++this.#sequences > MOST_SEQUENCES) this.#shown.reset();
    } else {
      // It was none, so its bytes are text.
      for (const [at, each] of sequence.entries()) this.#show(each, position - sequence.length + at);
      sequence.length = 0;
      if (byte === ESC) sequence.push(byte);
      else this.#show(byte, position);
    }
    // What comes from here on is the same for both.
    if (this.#shown.isIdle && sequence.length === 0) this.#isShownApart = false;
  }

  #show(byte: number, position: number): void {
    this.#sequences = 0;
    this.#cover(this.#shown.read(byte, position, this.#skipped), position + 1);
  }

  /** Nothing where there is no beginning. */
  #cover(from: number, to: number): void {
    if (from === -1) return;
    const run: Run = { from, to };
    for (let last = this.#runs.at(-1); last !== undefined && last.to >= from; last = this.#runs.at(-1)) {
      run.from = Math.min(run.from, last.from);
      this.#runs.pop();
    }
    this.#runs.push(run);
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

/** Whether the byte belongs to a sequence `ESC [ … m` or `ESC [ … K` that has begun so, and does not end it. SOURCE: ECMA-48, 5.4 */
function goesOn({ length }: readonly number[], byte: number): boolean {
  if (length === 0) return byte === ESC;
  if (length === 1) return byte === 0x5b;
  return byte >= 0x30 && byte <= 0x3f && length < LONGEST_SEQUENCE_BYTES;
}
