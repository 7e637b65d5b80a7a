/**
 * Assertions about cost that hold on any machine, however busy: they compare the processor time of different amounts of
 * work, and not with an absolute limit. A worse complexity takes so much more time that the limits need not be tight.
 */
import assert from 'node:assert/strict';

const TRIES = 10;
/** The processor-time clock is too coarse below this. */
const MIN_MS = 2;

/**
 * Milliseconds of processor time of this thread: the minimum of a few tries, of which the last is the first below
 * `limitMs`. The collector's and the compiler's threads are left out, since their work depends on what the tests before
 * have left to collect.
 */
function processorMs(work: () => unknown, limitMs = 0): number {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && least >= limitMs; tries++) {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return Math.max(MIN_MS, least);
}

/** Asserts that `times` as much work takes at most `limit` times as long. */
export function assertGrowth(
  work: (size: number) => unknown,
  { small, times, limit, what = '' }: { small: number; times: number; limit: number; what?: string },
): void {
  work(small); // compiles it
  const few = processorMs(() => work(small));
  const many = processorMs(() => work(small * times), limit * few);
  assert.ok(many < limit * few, `${what} ${few.toFixed(1)} ms, and ${many.toFixed(1)} ms for ${times} times as much`);
}
