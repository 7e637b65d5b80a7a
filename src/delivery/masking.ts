/** What is masked in a program's output, compiled once for all its streams. It guards against accidents, not against the program. */
import { Transform, type TransformCallback } from 'node:stream';
import type { Secret } from '../core/secret.ts';
import { Automaton } from './automaton.ts';
import { patternsOf } from './forms.ts';
import { Masker } from './masker.ts';

/** After so long without output, what waits is shown as far as that is safe. */
const QUIET_MS = 50;
/** CR CR LF, as a terminal in a terminal ends a line. */
const FEWEST_BREAKS = 3;
const MOST_BREAKS = 64;

export interface Masking {
  /** Names of the values that are too short to be masked, in their order. */
  readonly tooShort: readonly string[];
  /** Whether there is anything to mask. */
  readonly isNeeded: boolean;
  /** For one stream of bytes. */
  masker(): Masker;
  /** For a text that is whole. */
  maskText(text: string): string;
}

/** Names stand for values in warnings alone; the values stay in memory in all their forms for as long as the masking does. */
export function createMasking(values: Iterable<readonly [name: string, value: Secret]>): Masking {
  const patterns: ReturnType<typeof patternsOf> = [];
  const tooShort: string[] = [];
  let breaks = 0;
  for (const [name, value] of values) {
    const text = value.reveal();
    const found = patternsOf(text);
    if (found.length === 0) tooShort.push(name);
    for (const pattern of found) patterns.push(pattern);
    for (const [run] of text.matchAll(/[\r\n]+/g)) breaks = Math.max(breaks, run.length);
  }
  const automaton = new Automaton(patterns);
  const mostBreaks = Math.min(MOST_BREAKS, Math.max(FEWEST_BREAKS, 2 * breaks));
  const masker = (): Masker => new Masker(automaton, mostBreaks);
  return {
    tooShort,
    isNeeded: patterns.length > 0,
    masker,
    maskText(text) {
      const own = masker();
      return Buffer.concat([own.write(Buffer.from(text, 'utf8')), own.end()]).toString('utf8');
    },
  };
}

/** A masker between two streams: what waits is released when the source has been quiet for a moment. */
export class MaskingStream extends Transform {
  readonly #masker: Masker;
  #timer: NodeJS.Timeout | null = null;

  constructor(masking: Masking) {
    super();
    this.#masker = masking.masker();
  }

  override _transform(chunk: Uint8Array, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#stopWaiting();
    this.#pass(this.#masker.write(chunk));
    if (this.#masker.isHolding) this.#timer = setTimeout(() => this.#pass(this.#masker.release()), QUIET_MS);
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#stopWaiting();
    this.#pass(this.#masker.end());
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stopWaiting();
    done(error);
  }

  #pass(bytes: Uint8Array): void {
    if (bytes.length > 0) this.push(bytes);
  }

  #stopWaiting(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
