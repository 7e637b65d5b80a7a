/**
 * Replaces each run of bytes that belong to matches by one `[secret]`. The output does not depend on how the stream was
 * divided into chunks. Only bytes that may still become part of a match are held back.
 */
import type { Automaton } from './aho-corasick.ts';
import { MatchTracker } from './match-tracker.ts';

export const MASK = '[secret]';
const MASK_BYTES = Buffer.from(MASK);
const ESC = 0x1b;
/** Maximum length of a colour sequence with its ESC; longer ones are text. */
const LONGEST_SEQUENCE_BYTES = 40;
/** Maximum number of consecutive sequences inside a match, which bounds the held bytes. */
const MOST_SEQUENCES = 16;

/** A range of matched positions in the stream; `to` is exclusive. */
interface Run {
  from: number;
  to: number;
}

export class Masker {
  /** Tracks the bytes unchanged. */
  readonly #literal: MatchTracker;
  readonly #newTracker: () => MatchTracker;
  #shownTracker: MatchTracker | null = null;
  #isShownApart = false;
  /**
   * Since the trackers diverged: bytes of skipped sequences, number of consecutive sequences, and the incomplete
   * sequence.
   */
  #skipped = 0;
  #sequences = 0;
  readonly #sequence: number[] = [];
  /** Bytes read and not yet returned, and the position of the first. */
  #held: Uint8Array = new Uint8Array(0);
  #given = 0;
  /** End of the last masked run; a run that continues there gets no second mask. */
  #maskedTo = -1;
  #runs: Run[] = [];
  #maskCount = 0;

  /** `maxBreaks`: maximum number of consecutive line breaks inside a match, CR and LF counted separately. */
  constructor(automaton: Automaton, maxBreaks: number) {
    this.#newTracker = () => new MatchTracker(automaton, maxBreaks);
    this.#literal = this.#newTracker();
  }

  /**
   * Tracks the bytes without colour sequences, which highlighting inserts into a value. Used from a sequence inside a
   * partial match on. WHY created only then: few streams have one, and its memory costs more than a short stream.
   */
  get #shown(): MatchTracker {
    this.#shownTracker ??= this.#newTracker();
    return this.#shownTracker;
  }

  /** Whether bytes are held back. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /** Number of masks in the output so far. */
  get maskCount(): number {
    return this.#maskCount;
  }

  /** Reads the next bytes; returns the output that they decide. */
  write(chunk: Uint8Array): Uint8Array {
    const start = this.#given + this.#held.length;
    for (let at = 0; at < chunk.length; at++) this.#read(chunk[at] ?? 0, start + at);
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const end = start + chunk.length;
    const shownFrom = this.#isShownApart ? this.#shown.heldFrom(end) : end;
    return this.#give(Math.min(this.#literal.heldFrom(end), shownFrom));
  }

  /**
   * For a quiet stream, such as a prompt. Returns held bytes, except that at most a quarter and at most 8 bytes of a
   * value's beginning are shown. INVARIANT: if the value is completed later, its rest is masked: it is never output
   * whole.
   */
  release(): Uint8Array {
    const to = this.#literal.releasedTo(this.#given + this.#held.length);
    // An incomplete sequence is held: in front of a mask it would form a sequence with the mask's first character.
    return this.#give(this.#isShownApart ? this.#shown.releasedTo(to - this.#sequence.length) : to);
  }

  /** Ends the stream; held bytes can no longer become a match. Then another stream may be written. */
  end(): Uint8Array {
    this.#literal.reset();
    this.#isShownApart = false;
    const rest = this.#give(this.#given + this.#held.length);
    this.#maskedTo = -1;
    return rest;
  }

  /** WHY: an escape sequence outside a partial match is text, since a value may contain one; this can mask too much. */
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
      // Not a sequence, so its bytes are text.
      for (const [at, each] of sequence.entries()) this.#show(each, position - sequence.length + at);
      sequence.length = 0;
      if (byte === ESC) sequence.push(byte);
      else this.#show(byte, position);
    }
    // Both trackers agree again.
    if (this.#shown.isIdle && sequence.length === 0) this.#isShownApart = false;
  }

  #show(byte: number, position: number): void {
    this.#sequences = 0;
    this.#cover(this.#shown.read(byte, position, this.#skipped), position + 1);
  }

  /** Adds a run and joins overlapping ones; `from` is -1 without a match. */
  #cover(from: number, to: number): void {
    if (from === -1) return;
    const run: Run = { from, to };
    for (let last = this.#runs.at(-1); last !== undefined && last.to >= from; last = this.#runs.at(-1)) {
      run.from = Math.min(run.from, last.from);
      // The bytes of what looked like a sequence are read late, after matches that end behind them.
      run.to = Math.max(run.to, last.to);
      this.#runs.pop();
    }
    this.#runs.push(run);
  }

  /** Returns output up to the position, and all of a run that begins before it: it stays masked whatever follows. */
  #give(to: number): Uint8Array {
    const pieces: Uint8Array[] = [];
    const origin = this.#given;
    let at = origin;
    let index = 0;
    for (;;) {
      const run = this.#runs[index];
      if (run !== undefined && run.from <= at) {
        if (this.#maskedTo !== at) {
          pieces.push(MASK_BYTES);
          this.#maskCount++;
        }
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
    // WHY a copy: the caller may reuse its chunk, and a few bytes should not retain a large one.
    this.#held = new Uint8Array(this.#held.subarray(at - origin));
    this.#given = at;
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  }
}

/** Whether the byte continues, without ending it, a sequence `ESC [ … m` or `ESC [ … K`. SOURCE: ECMA-48, 5.4 */
function goesOn({ length }: readonly number[], byte: number): boolean {
  if (length === 0) return byte === ESC;
  if (length === 1) return byte === 0x5b;
  return byte >= 0x30 && byte <= 0x3f && length < LONGEST_SEQUENCE_BYTES;
}
