/** Work on many things, a few at a time. */

/** Begins nothing more once the signal is aborted, and then rejects with its reason when all that was begun has ended. */
export async function inParallel<T>(
  queue: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const items = queue.values();
  const underWay = new Set<Promise<void>>();
  const failures: unknown[] = [];
  for (;;) {
    while (underWay.size < atOnce && failures.length === 0 && !signal.aborted) {
      const { value, done } = items.next();
      if (done === true) break;
      const one = work(value)
        .catch((reason: unknown) => void failures.push(reason))
        .finally(() => underWay.delete(one));
      underWay.add(one);
    }
    if (underWay.size === 0) break;
    await Promise.race(underWay);
  }
  if (failures.length > 0) throw failures[0];
  signal.throwIfAborted();
}
