/** Waiting: for a stream, for a promise with a time limit, and for work that runs in parallel. */
import type { Writable } from 'node:stream';

/** Resolves when the stream accepts more data, or is closed. */
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

/** Resolves when the promise has settled, or after the time. WHY no `unref`: the program must not end before. */
export async function settledWithin(promise: Promise<unknown> | null, milliseconds: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  const settled = Promise.resolve(promise).then(
    () => undefined,
    () => undefined,
  );
  await Promise.race([settled, late]);
  clearTimeout(timer);
}

/**
 * Runs `work` on every item, `limit` at a time. After a failure or an abort it starts no further item, waits for the
 * running ones, and rejects with the first failure or the signal's reason.
 */
export async function inParallel<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const queue = items.values();
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (const item of queue) {
      if (failures.length > 0 || signal?.aborted === true) return;
      await work(item).catch((reason: unknown) => void failures.push(reason));
    }
  };
  await Promise.all(Array.from({ length: limit }, worker));
  if (failures.length > 0) throw failures[0];
  signal?.throwIfAborted();
}
