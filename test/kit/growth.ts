/**
 * Assertions about cost that hold on any machine, however busy: they compare the processor time of different amounts of
 * work, and not with an absolute limit. A worse complexity takes so much more time that the limits need not be tight.
 */
import assert from 'node:assert/strict';

/** Tries of the large amount, and of a row of the small one. */
const [TRIES, ROWS] = [10, 3];
/** Runs of the small amount in a row. WHY: some systems count in steps of 4 ms, longer than a single run may take. */
const RUNS = 5;
/** Below this, other work of the thread counts for more. */
const MIN_MS = 2;

/**
 * Milliseconds of processor time of this thread: the minimum of the tries, of which the last is the first below
 * `limitMs`. The collector's and the compiler's threads are left out, since their work depends on what the tests before
 * have left to collect.
 */
function processorMs(work: () => unknown, tries: number, limitMs = 0): number {
  let least = Number.POSITIVE_INFINITY;
  for (let done = 0; done < tries && least >= limitMs; done++) {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

/** Asserts that `times` as much work takes at most `limit` times as long. */
export function assertGrowth(
  work: (size: number) => unknown,
  { small, times, limit, what = '' }: { small: number; times: number; limit: number; what?: string },
): void {
  work(small); // compiles it
  const row = (): void => {
    for (let run = 0; run < RUNS; run++) work(small);
  };
  const few = Math.max(MIN_MS, processorMs(row, ROWS) / RUNS);
  const many = processorMs(() => work(small * times), TRIES, limit * few);
  assert.ok(many < limit * few, `${what} ${few.toFixed(1)} ms, and ${many.toFixed(1)} ms for ${times} times as much`);
}
