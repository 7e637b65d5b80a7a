/**
 * The threads that check a long log. They run at the lowest priority where a thread can have one of its own (Linux); elsewhere
 * one core is left to the callers. While the service has callers they rest most of the time.
 */
import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ChainPoint } from '../../crypto/chain.ts';
import { exportAuditKey, type VaultKeys } from '../../crypto/keys.ts';
import type { Store } from '../../store/store.ts';
import { type ChainBreak, earlierBreak } from './chain-verifier.ts';
import { RANGE_ENTRIES, WorkQueue } from './work-queue.ts';
import type { Findings, RangesTask } from './worker.ts';

const MAX_THREADS = 4;
/** A step's entries die young: a larger nursery would only be more memory. */
const YOUNG_GENERATION_MB = 8;
/** How often it is looked whether there are callers … */
const LOAD_INTERVAL_MS = 20;
/** … that is, whether the service's own thread is in use for more than this share of the time. */
const BUSY_UTILIZATION = 0.1;

/**
 * The first break of the log up to `lastSeq`, or its end. `watch` is given what tells how many entries were checked so far.
 * Every thread has ended when this settles. @throws the signal's reason; what a thread throws
 */
export async function verifyInParallel(
  { store, keys }: { readonly store: Store; readonly keys: VaultKeys },
  lastSeq: number,
  signal: AbortSignal,
  watch: (checked: () => number) => void,
): Promise<ChainPoint | ChainBreak> {
  const share = new WorkQueue(lastSeq);
  watch(() => share.checked);
  const end = (): void => share.cancel();
  signal.addEventListener('abort', end, { once: true });
  const task: RangesTask = { log: store.logLocation, auditKey: exportAuditKey(keys), lastSeq, shared: share.numbers };
  const threads = Array.from({ length: countThreads(lastSeq) }, () =>
    checkInThread(task).catch((error: unknown) => {
      share.cancel();
      throw error;
    }),
  );
  const looking = watchLoad((isBusy) => share.setBusy(isBusy));
  const ended = await Promise.allSettled(threads);
  clearInterval(looking);
  signal.removeEventListener('abort', end);
  signal.throwIfAborted();
  let broken: ChainBreak | null = null;
  let last: ChainPoint | null = null;
  for (const thread of ended) {
    if (thread.status === 'rejected') throw thread.reason;
    const { broken: its, end: point } = thread.value;
    if (its !== null) broken = earlierBreak(broken, its);
    if (point !== null && point.seq > (last?.seq ?? 0)) last = point;
  }
  if (broken !== null) {
    // Where the rest of a range is missing, what stands behind the gap is in another one.
    const [next] = await store.readEntries(broken.entry, lastSeq, 1);
    return { ...broken, timestamp: next?.timestamp ?? broken.timestamp };
  }
  if (last?.seq !== lastSeq) throw new Error('threads ended before the log did, and none found a break');
  return last;
}

function watchLoad(tell: (areThere: boolean) => void): NodeJS.Timeout {
  let before = performance.eventLoopUtilization();
  return setInterval(() => {
    const now = performance.eventLoopUtilization();
    tell(performance.eventLoopUtilization(now, before).utilization > BUSY_UTILIZATION);
    before = now;
  }, LOAD_INTERVAL_MS);
}

function countThreads(lastSeq: number): number {
  const cores = availableParallelism() - (process.platform === 'linux' ? 0 : 1);
  return Math.max(1, Math.min(MAX_THREADS, cores, Math.ceil(lastSeq / RANGE_ENTRIES)));
}

/** Settles when the thread has ended, and not before. */
function checkInThread(task: RangesTask): Promise<Findings> {
  return new Promise((resolve, reject) => {
    let findings: Findings | null = null;
    let failure: unknown = null;
    const worker = new Worker(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: task,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    worker.once('message', (found: Findings) => {
      findings = found;
    });
    worker.once('error', (error) => {
      failure = error;
    });
    worker.once('exit', (code) => {
      if (findings === null) reject(failure ?? new Error(`a thread of the verification ended with ${code}`));
      else resolve(findings);
    });
  });
}
