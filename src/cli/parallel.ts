/**
 * Runs `work` on every item, `limit` at a time. After a failure or an abort it starts nothing more, waits for what is
 * running, and rejects with the first failure or the signal's reason.
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
