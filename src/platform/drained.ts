/** Waiting until a stream takes more, for writers that no pipe connects. */
import type { Writable } from 'node:stream';

/** Resolves when the stream takes more, or is closed. */
export function drained(stream: Writable): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (stream.destroyed) return Promise.resolve();
  const done = (): void => {
    stream.off('drain', done).off('close', done).off('error', done);
    resolve();
  };
  stream.on('drain', done).on('close', done).on('error', done);
  return promise;
}
