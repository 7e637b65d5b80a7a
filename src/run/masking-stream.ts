/** A masker as a transform stream. */
import { Transform, type TransformCallback } from 'node:stream';
import type { Masker } from '../masking/masker.ts';
import type { Masking } from '../masking/masking.ts';

/** After this time without output, held bytes are released as far as that is safe. */
const QUIET_MS = 50;

/** Masks its input. Held bytes are released as far as safe when the source is quiet. */
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
