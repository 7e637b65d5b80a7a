/** From a program's output through a masker to where ours goes, at the pace of whoever reads it there, to the last byte. */
import type { Readable, Writable } from 'node:stream';
import type { Masking } from '../masking/masking.ts';
import { MaskingStream } from './masking-stream.ts';

const TICK_MS = 100;
/** After the program's end: so many ticks without a byte, and whoever still has the stream open, such as a daemon, is not waited for. */
const QUIET_TICKS = 5;
/** After the program's end: the same, whatever those left behind go on writing. Ticks in which our reader kept us waiting do not count. */
export const LAST_OUTPUT_MS = 5000;
/**
 * What the program itself had written may fill its pipe, which a slow reader shall get whole; anything behind that is others'.
 * SOURCE: pipe(7), /proc/sys/fs/pipe-max-size
 */
const LARGEST_PIPE_BYTES = 1024 * 1024;
/** For what has been read when we are stopped: a reader that takes it, takes it at once. */
const STOPPED_WITHIN_MS = 200;

/** Errors of a stream whose reader is gone. */
const GONE: ReadonlySet<string> = new Set(['EPIPE', 'EIO']);

/** What was begun by `pour`. */
export interface OutputPump {
  /** To be called when the program has ended: resolves when all that it wrote has been written, or those it left behind have had their time. */
  finish(): Promise<void>;
  /** Reads no more; `finish` then resolves at once. */
  stop(): void;
  /** Of the error by which output was lost, though somebody is there to read it: a full disk's. Null where there was none. */
  writeError(): string | null;
}

/**
 * Once the target cannot be written the program meets a closed pipe. One `isBeside` the output proper is closed where its reader is
 * gone alone: otherwise the rest is thrown away, because who writes to a full log goes on.
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
    if (!GONE.has(code)) loss = code;
    // WHY the source is closed: so the program meets a closed pipe, as it would without us. What filled the disk it cannot be told.
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
        if (isLate && readBytes >= LARGEST_PIPE_BYTES) source.destroy();
        if (target.writableNeedDrain || masked.writableNeedDrain) return;
        if (++quietTicks > QUIET_TICKS || ++freeTicks * TICK_MS >= LAST_OUTPUT_MS) source.destroy();
      }, TICK_MS);
      await Promise.race([done, stopped.promise]);
      clearInterval(timer);
    },
    stop() {
      source.destroy();
      setTimeout(() => stopped.resolve(), STOPPED_WITHIN_MS).unref();
    },
    writeError: () => loss,
  };
}

/** Resolves when the masker has ended and all of it is written, or can't be. */
export function passOn(masked: MaskingStream, target: Writable): Promise<void> {
  masked.pipe(target, { end: false });
  return new Promise((resolve) => {
    target.once('error', () => {
      masked.destroy();
      resolve();
    });
    masked.once('end', () => {
      // WHY not always: on a full device not even nothing can be written. WHY not at once: an error of the last write is still told.
      if (target.writableLength === 0) setImmediate(resolve);
      else target.write('', () => resolve());
    });
  });
}
