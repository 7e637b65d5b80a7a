/**
 * The threads that check a long log. This thread sends each of them one short range at a time. On Linux they run at the
 * lowest priority; elsewhere one core is left to the callers. While the server is busy, a thread waits between ranges.
 */

import { on } from 'node:events';
import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { type ChainPoint, exportAuditKeys } from '../../../crypto/chain.ts';
import type { VaultKeys } from '../../../crypto/vault-keys.ts';
import { readEntries } from '../../../store/audit-log.ts';
import { StoreError } from '../../../store/errors.ts';
import type { Store } from '../../../store/port.ts';
import { type ChainBreak, earlierBreak } from './chain-verifier.ts';
import type { RangeResult, VerifiedRange, WorkerSetup } from './worker.ts';

const MAX_THREADS = 4;
/**
 * Some hundredths of a second of work. WHY not less: this thread's work for each range would count as that of callers.
 */
export const RANGE_ENTRIES = 8000;
/** The entries of a range are soon garbage: a larger young generation would only take more memory. */
const YOUNG_GENERATION_MB = 8;
/** The server is busy while its own thread uses more than this share of a processor. */
const BUSY_SHARE = 0.1;
/** How much longer than it computed a thread waits for its next range while the server is busy. */
const PAUSE_FACTOR = 6;

/**
 * Returns the first break of the audit log up to `lastSeq`, or its end. `onChecked` is called with the number of
 * entries of each range that was checked. Every thread has ended when this settles.
 * @throws the signal's reason; the error of a thread
 */
export async function verifyInParallel(
  { store, keys }: { readonly store: Store; readonly keys: VaultKeys },
  lastSeq: number,
  signal: AbortSignal,
  onChecked: (entries: number) => void,
): Promise<ChainPoint | ChainBreak> {
  const setup: WorkerSetup = { log: await store.locateLog(), auditKeys: exportAuditKeys(keys) };
  const threads = Array.from({ length: countThreads(lastSeq) }, () => startThread(setup));
  const ranges = splitLog(lastSeq);
  let broken: ChainBreak | null = null;
  let end: ChainPoint | null = null;
  try {
    for (const found of await Promise.all(threads.map((thread) => checkRanges(thread, ranges, signal, onChecked)))) {
      if (found === null) continue;
      if ('entry' in found) broken = earlierBreak(broken, found);
      else if (found.seq === lastSeq) end = found;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
  if (broken !== null) {
    // The entry after a gap may be in another range than the gap.
    const [next] = await store.run(readEntries(broken.entry, lastSeq, 1));
    return { ...broken, timestamp: next?.timestamp ?? broken.timestamp };
  }
  if (end === null) throw new Error('the threads ended before the log, and none found a break');
  return end;
}

/** INVARIANT: in the order of the audit log, so the ranges before a break are always checked. */
function* splitLog(lastSeq: number): Generator<VerifiedRange> {
  for (let fromSeq = 1; fromSeq <= lastSeq; fromSeq += RANGE_ENTRIES) {
    yield { fromSeq, toSeq: Math.min(lastSeq, fromSeq + RANGE_ENTRIES - 1) };
  }
}

/**
 * Checks ranges in a thread until none is left. Returns the end of its last range, the break that it found, or null if
 * no range was left. Leaving the loop early ends `ranges` for every thread.
 */
async function checkRanges(
  thread: Worker,
  ranges: Generator<VerifiedRange>,
  signal: AbortSignal,
  onChecked: (entries: number) => void,
): Promise<ChainPoint | ChainBreak | null> {
  const results = on(thread, 'message', { close: ['exit'], signal });
  let found: ChainPoint | ChainBreak | null = null;
  for (const range of ranges) {
    const sentAt = performance.now();
    const usedBefore = process.threadCpuUsage();
    thread.postMessage(range);
    const message = await results.next();
    const [result]: RangeResult[] = message.done === true ? [] : message.value;
    if (result === undefined) throw new Error('a thread of the verification exited');
    // WHY its class: a caller's response is then 503, as for any other failure of the store.
    if ('failure' in result) throw new StoreError('unavailable', result.failure);
    const { end, cpuMs } = result;
    if ('entry' in end) return end;
    found = end;
    onChecked(range.toSeq - range.fromSeq + 1);
    const { user, system } = process.threadCpuUsage(usedBefore);
    const waitMs = pauseMs(cpuMs, (user + system) / 1000 / (performance.now() - sentAt));
    if (waitMs > 0) await sleep(waitMs, undefined, { signal });
  }
  return found;
}

/**
 * The pause after a range, by the processor time of the thread and the share of a processor that the server's own
 * thread used meanwhile. WHY processor time: on a busy machine both threads also wait, and that is no load of callers.
 * WHY not the priority alone: a thread also slows down others through the processor's caches and through locks.
 */
export function pauseMs(cpuMs: number, serviceShare: number): number {
  return serviceShare > BUSY_SHARE ? cpuMs * PAUSE_FACTOR : 0;
}

function countThreads(lastSeq: number): number {
  const cores = availableParallelism() - (process.platform === 'linux' ? 0 : 1);
  return Math.max(1, Math.min(MAX_THREADS, cores, Math.ceil(lastSeq / RANGE_ENTRIES)));
}

function startThread(workerData: WorkerSetup): Worker {
  const thread = new Worker(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), {
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  // WHY: an error that comes after the verification has ended would otherwise end the process.
  return thread.on('error', () => undefined);
}
