/**
 * Verification: reads the whole log, computes every link again, and holds the end against the head record.
 * A long log is parted into ranges that threads check side by side. SOURCE: interface 2.9; decisions, "Audit".
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Context } from '../core/operation.ts';
import { adminRead } from '../core/operations/adminread.ts';
import { exportAuditKey } from '../crypto/keys.ts';
import { readInSteps } from './auditlog.ts';
import { type Break, ChainCheck, type ChainPoint, checkEnd } from './chaincheck.ts';
import type { RangeResult, RangeTask } from './rangecheck.ts';
import type { Vault } from './vault.ts';

export type Verification =
  | {
      readonly isValid: true;
      readonly entries: number;
      readonly firstEntry: string | null;
      readonly lastEntry: string | null;
    }
  | {
      readonly isValid: false;
      readonly breakAtEntry: number;
      readonly breakAtTimestamp: string | null;
      readonly why: string;
    };

/** Entries checked at a time on the service's own thread: some milliseconds of work. */
const STEP_ENTRIES = 500;
/** A log that is shorter is checked before a thread would have started. */
const WORTH_A_THREAD = 20_000;
const MAX_THREADS = 4;

export async function verifyLog(vault: Vault, context: Context): Promise<Verification> {
  await vault.ledger.submit(adminRead(context, 'audit.verify', '*', () => null));
  const { keys, store } = vault;
  const { head, last } = await store.readHead();
  const lastSeq = last?.seq ?? 0;
  const followed = lastSeq < WORTH_A_THREAD ? await followHere(vault, lastSeq) : await followInThreads(vault, lastSeq);
  if ('why' in followed) return toVerification(followed);
  const beyondHead = head !== null && head.seq < followed.seq ? await timestampAt(vault, head.seq + 1) : null;
  const broken = checkEnd(keys, followed, head, beyondHead);
  if (broken !== null) return toVerification(broken);
  const firstEntry = await timestampAt(vault, 1);
  return { isValid: true, entries: followed.seq, firstEntry, lastEntry: followed.timestamp };
}

async function timestampAt({ store }: Vault, seq: number): Promise<string | null> {
  const [entry] = await store.readEntries(seq, seq, 1);
  return entry?.timestamp ?? null;
}

function toVerification({ entry, timestamp, why }: Break): Verification {
  return { isValid: false, breakAtEntry: entry, breakAtTimestamp: timestamp, why };
}

async function followHere(vault: Vault, lastSeq: number): Promise<ChainPoint | Break> {
  const check = new ChainCheck(vault.keys);
  for await (const entries of readInSteps(vault, lastSeq, STEP_ENTRIES)) {
    for (const entry of entries) {
      const broken = check.next(entry);
      if (broken !== null) return broken;
    }
  }
  return check.point;
}

/** The first break of the first range that has one; else the end of the last range. */
async function followInThreads({ store, keys }: Vault, lastSeq: number): Promise<ChainPoint | Break> {
  const threads = Math.min(MAX_THREADS, availableParallelism());
  const length = Math.ceil(lastSeq / threads);
  const ranges = Array.from({ length: threads }, (_, index) => ({
    log: store.logLocation,
    auditKey: exportAuditKey(keys),
    fromSeq: index * length + 1,
    toSeq: Math.min(lastSeq, (index + 1) * length),
  }));
  const results = await Promise.all(ranges.map(checkInThread));
  const broken = results.find((result): result is Break => result !== 'no start' && 'why' in result);
  if (broken !== undefined) {
    // Where the rest of a range is missing, what stands behind the gap is in another one.
    const [next] = await store.readEntries(broken.entry, lastSeq, 1);
    return { ...broken, timestamp: next?.timestamp ?? broken.timestamp };
  }
  const end = results.at(-1);
  if (end === undefined || end === 'no start' || 'why' in end)
    throw new Error('a range had no start, and none before it was broken');
  return end;
}

function checkInThread(task: RangeTask): Promise<RangeResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./rangecheck.ts', import.meta.url), { workerData: task });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`a thread of the verification ended with ${code}`)));
  });
}
