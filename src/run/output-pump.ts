/** Copies a program's output through a masker to this process's output, with backpressure and without loss. */
import { type Readable, Transform, type TransformCallback, type Writable } from 'node:stream';
import type { Masker, Masking } from '../masking/masking.ts';

/** Held bytes are released after this time without output, as far as that is safe. */
const QUIET_MS = 50;
const TICK_MS = 100;
/**
 * After the program's end the stream is closed after this many ticks without output: a background process may keep it
 * open.
 */
const QUIET_TICKS = 5;
/** Limit after the program's end for processes that still write. Ticks in which the reader was slow do not count. */
const LAST_OUTPUT_MS = 5000;
/**
 * The program's own output can fill its pipe, and a slow reader receives all of it. Output beyond that comes from other
 * processes. SOURCE: pipe(7), /proc/sys/fs/pipe-max-size
 */
const MAX_PIPE_BYTES = 1024 * 1024;
/** Time to write the output already read after `stop`. */
const STOP_TIMEOUT_MS = 200;

/** Errors of a stream whose reader has closed it. */
const READER_CLOSED: ReadonlySet<string> = new Set(['EPIPE', 'EIO']);

export interface OutputPump {
  /**
   * To be called after the program's end. Resolves when its output was written, or the time for background processes is
   * over.
   */
  finish(): Promise<void>;
  stop(): void;
  /**
   * Code of the error that lost output, such as the error of a full disk; null if there was none. A closed reader does
   * not count.
   */
  writeError(): string | null;
}

/**
 * Closes the program's pipe after a write error. Exception: with `isStderr` and an error other than a closed reader,
 * such as a full disk, further output is discarded and the program continues.
 */
export function pumpOutput(source: Readable, masking: Masking, target: Writable, isStderr: boolean): OutputPump {
  const masked = new MaskingStream(masking);
  let quietTicks = 0;
  let readBytes = 0;
  source.on('data', (chunk: Uint8Array) => {
    quietTicks = 0;
    readBytes += chunk.length;
  });
  let loss: string | null = null;
  target.once('error', ({ code = 'unknown' }: NodeJS.ErrnoException) => {
    if (!READER_CLOSED.has(code)) loss = code;
    // WHY closed: the program receives SIGPIPE, as it would without this process. An error such as a full disk cannot
    // be passed on.
    if (!isStderr || loss === null) source.destroy();
    else source.unpipe(masked).resume();
  });
  const done = passOn(masked, target);
  const stopped = Promise.withResolvers<void>();
  source.once('close', () => masked.end());
  source.on('error', () => undefined);
  source.pipe(masked);
  return {
    async finish() {
      const startedAt = performance.now();
      readBytes = 0;
      let freeTicks = 0;
      const timer = setInterval(() => {
        const isLate = performance.now() - startedAt >= LAST_OUTPUT_MS;
        if (isLate && readBytes >= MAX_PIPE_BYTES) source.destroy();
        if (target.writableNeedDrain || masked.writableNeedDrain) return;
        if (++quietTicks > QUIET_TICKS || ++freeTicks * TICK_MS >= LAST_OUTPUT_MS) source.destroy();
      }, TICK_MS);
      await Promise.race([done, stopped.promise]);
      clearInterval(timer);
    },
    stop() {
      source.destroy();
      setTimeout(() => stopped.resolve(), STOP_TIMEOUT_MS).unref();
    },
    writeError: () => loss,
  };
}

/** Resolves when the masker's whole output has been written, or a write failed. */
export function passOn(masked: MaskingStream, target: Writable): Promise<void> {
  masked.pipe(target, { end: false });
  return new Promise((resolve) => {
    target.once('error', () => {
      masked.destroy();
      resolve();
    });
    masked.once('end', () => {
      // WHY conditional: even an empty write fails when the device is full. WHY setImmediate: the last write may still
      // report an error.
      if (target.writableLength === 0) setImmediate(resolve);
      else target.write('', () => resolve());
    });
  });
}

/** Masks its input. When the source is quiet, held bytes are released as far as that is safe. */
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
