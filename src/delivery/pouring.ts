/** From a program's output through a masker to where ours goes, at the pace of whoever reads it there, to the last byte. */
import type { Readable, Writable } from 'node:stream';
import { type Masking, MaskingStream } from './masking.ts';

const TICK_MS = 100;
/** After the program's end: so many ticks without a byte, and whoever still has the stream open, such as a daemon, is not waited for. */
const QUIET_TICKS = 5;

/** What was begun by `pour`. */
export interface Pouring {
  /** To be called when the program has ended: resolves when all that it wrote has been written. */
  finish(): Promise<void>;
}

export function pour(source: Readable, masking: Masking, target: Writable): Pouring {
  const masked = new MaskingStream(masking);
  let quietTicks = 0;
  source.on('data', () => {
    quietTicks = 0;
  });
  // WHY the source is closed: so the program meets a closed pipe, as it would without us.
  target.once('error', () => source.destroy());
  const done = passOn(masked, target);
  source.once('close', () => masked.end());
  source.on('error', () => undefined);
  source.pipe(masked);
  return {
    async finish() {
      const timer = setInterval(() => {
        if (!target.writableNeedDrain && !masked.writableNeedDrain && ++quietTicks > QUIET_TICKS) source.destroy();
      }, TICK_MS);
      await done;
      clearInterval(timer);
    },
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
    masked.once('end', () => target.write('', () => resolve()));
  });
}
