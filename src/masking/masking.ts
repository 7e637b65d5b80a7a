/**
 * Compiles the values to mask, once for all streams of a program, and masks them in streams. Masking guards against
 * accidents, not against a hostile program.
 */
import type { Secret } from '../vault/credentials/credential.ts';
import { Automaton } from './aho-corasick.ts';
import { Matcher } from './matcher.ts';
import { Patterns } from './plain-forms.ts';

/** The bytes of CR CR LF, the line end of a terminal inside a terminal. */
const FEWEST_BREAKS = 3;
const MOST_BREAKS = 64;
/** Maskers that are kept for later streams; each takes 40 KiB. */
const MAX_IDLE = 16;

export interface Masking {
  /** Names of the values that are too short to be masked, in the given order. */
  readonly tooShort: readonly string[];
  readonly isNeeded: boolean;
  /** States of the automaton; each takes about 30 bytes. */
  readonly states: number;
  /** A masker for one stream of bytes. `windowBytes`: see `Masker`. */
  masker(windowBytes?: number): Masker;
  /** Takes back a masker whose stream has ended. WHY: creating one takes as long as masking a small text. */
  reuse(masker: Masker): void;
}

/**
 * Compiles the values. Names are used only in warnings. Equal patterns, of equal or different values, are stored once,
 * for the lifetime of the masking.
 */
export function createMasking(values: Iterable<readonly [name: string, value: Secret]>): Masking {
  const pieces = compileMasking(values);
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}

/** Does the work of `createMasking` in pieces of a few milliseconds, and yields between them. */
export function* compileMasking(
  values: Iterable<readonly [name: string, value: Secret]>,
): Generator<undefined, Masking> {
  const patterns = new Patterns();
  const isMasked = new Map<string, boolean>();
  const tooShort: string[] = [];
  let breaks = 0;
  for (const [name, value] of values) {
    const text = value.reveal();
    if (!isMasked.has(text)) {
      isMasked.set(text, yield* patterns.add(text));
      for (const [run] of text.matchAll(/[\r\n]+/g)) breaks = Math.max(breaks, run.length);
    }
    if (isMasked.get(text) === false) tooShort.push(name);
  }
  const automaton = yield* Automaton.build(patterns.all);
  const mostBreaks = Math.min(MOST_BREAKS, Math.max(FEWEST_BREAKS, 2 * breaks));
  const idle: Masker[] = [];
  return {
    tooShort,
    isNeeded: patterns.all.length > 0,
    states: automaton.size,
    masker(windowBytes) {
      const index = idle.findIndex((masker) => masker.windowBytes === (windowBytes ?? null));
      const [known] = index === -1 ? [] : idle.splice(index, 1);
      known?.restart();
      return known ?? new Masker(automaton, mostBreaks, windowBytes);
    },
    reuse(masker) {
      if (idle.length < MAX_IDLE) idle.push(masker);
    },
  };
}

const MASK = '[secret]';
const MASK_BYTES = Buffer.from(MASK);

/** A range of matched positions in the stream; `to` is exclusive. */
interface Run {
  from: number;
  to: number;
}

/**
 * Replaces each run of bytes that belong to matches with one `[secret]`. The output does not depend on how the stream
 * was divided into chunks. Without a window, only bytes that may still become part of a match are held back. With a
 * window, the last bytes are always held back, so that neither the returned bytes nor their time reveal how much of a
 * value has matched.
 */
export class Masker {
  readonly #matcher: Matcher;
  /** Null without a window. A match is masked at most this many bytes before its end. */
  readonly windowBytes: number | null;
  /** Bytes read and not yet returned, and the position of the first one. */
  #held: Uint8Array = new Uint8Array(0);
  #given = 0;
  /** End of the last masked run. A run that continues there gets no second mask. */
  #maskedTo = -1;
  #runs: Run[] = [];
  #maskCount = 0;
  #stepsBefore = 0;
  /** No mask begins before this position. */
  #floor = 0;
  readonly #onMatch = (from: number, to: number): void => this.#cover(from, to);

  /** `mostBreaks`: maximum number of consecutive line breaks inside a match, CR and LF counted separately. */
  constructor(automaton: Automaton, mostBreaks: number, windowBytes: number | null = null) {
    this.#matcher = new Matcher(automaton, mostBreaks);
    this.windowBytes = windowBytes;
  }

  /** Whether bytes are held back. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  get maskCount(): number {
    return this.#maskCount;
  }

  get steps(): number {
    return this.#matcher.steps - this.#stepsBefore;
  }

  /**
   * Reads the next bytes, and returns the output that they decide. `ends`: places in the chunk at which everything is
   * decided, whatever has matched. If such a place divides a match, the rest of the match is masked.
   */
  write(chunk: Uint8Array, ends: readonly number[] = []): Uint8Array {
    const start = this.#given + this.#held.length;
    let from = 0;
    for (const to of [...ends, chunk.length]) {
      this.#matcher.read(chunk.subarray(from, to), start + from, this.#onMatch);
      if (to !== chunk.length || ends.at(-1) === to) this.#floor = start + to;
      from = to;
    }
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const end = start + chunk.length;
    return this.#give(Math.max(this.#floor, end - (this.windowBytes ?? this.#matcher.heldBytes())));
  }

  /**
   * Returns held bytes of a quiet stream, such as a prompt. Of a value's beginning, at most a quarter and at most 8
   * bytes are shown. INVARIANT: if the value is completed later, its rest is masked, so it is never output whole.
   */
  release(): Uint8Array {
    return this.#give(this.#given + this.#held.length - this.#matcher.heldWhenQuiet());
  }

  /** Ends the stream; held bytes can no longer become a match. Another stream may then be written. */
  end(): Uint8Array {
    this.#matcher.reset();
    const rest = this.#give(this.#given + this.#held.length);
    this.#maskedTo = -1;
    return rest;
  }

  /** Returns the output for a whole stream that is a short text. May be called only before another stream has begun. */
  text(bytes: Uint8Array): Uint8Array {
    this.#matcher.read(bytes, this.#given, this.#onMatch);
    this.#held = bytes;
    return this.end();
  }

  restart(): void {
    this.#maskCount = 0;
    this.#stepsBefore = this.#matcher.steps;
  }

  #cover(from: number, to: number): void {
    const first = Math.max(from, this.#floor, to - (this.windowBytes ?? to));
    const run: Run = { from: first, to };
    for (let last = this.#runs.at(-1); last !== undefined && last.to >= first; last = this.#runs.at(-1)) {
      run.from = Math.min(run.from, last.from);
      run.to = Math.max(run.to, last.to);
      this.#runs.pop();
    }
    this.#runs.push(run);
  }

  /**
   * Returns output up to the position, and all of a run that begins before it. The run stays masked, whatever follows.
   */
  #give(to: number): Uint8Array {
    const pieces: Uint8Array[] = [];
    const origin = this.#given;
    let at = origin;
    let index = 0;
    for (;;) {
      const run = this.#runs[index];
      if (run !== undefined && run.from <= at && (this.windowBytes === null || run.from < to)) {
        if (this.#maskedTo !== at) {
          pieces.push(MASK_BYTES);
          this.#maskCount++;
        }
        at = Math.max(at, run.to);
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
    // WHY a copy: the caller may reuse its chunk, and a few bytes should not keep a large one in memory.
    this.#held = new Uint8Array(this.#held.subarray(at - origin));
    this.#given = at;
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  }
}
