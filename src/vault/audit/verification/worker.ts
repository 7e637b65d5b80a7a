/** A thread of the verification: checks the ranges that it is sent, one after the other, over a separate connection. */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { type AuditKeys, auditKeyAt, CHAIN_START, type ChainPoint, importAuditKeys } from '../../../crypto/chain.ts';
import { storeErrorOf } from '../../../store/errors.ts';
import { openLogReader } from '../../../store/readers.ts';
import type { LogLocation } from '../../../store/stored-data.ts';
import { type ChainBreak, ChainVerifier } from './chain-verifier.ts';

export interface WorkerSetup {
  readonly log: LogLocation;
  /** The keys in the form that `exportAuditKeys` writes. */
  readonly auditKeys: string;
}

/** Sequence numbers, both included. */
export interface VerifiedRange {
  readonly fromSeq: number;
  readonly toSeq: number;
}

export type RangeResult =
  | {
      /** The last entry of the range, or its break. */
      readonly end: ChainPoint | ChainBreak;
      readonly cpuMs: number;
    }
  /** The store could not be read, or its log lacks an entry that the node has seen. */
  | { readonly failure: string };

const LOWEST_PRIORITY = 19;
const { log, auditKeys }: WorkerSetup = workerData;

// WHY only on Linux: elsewhere the priority is the whole process's.
if (process.platform === 'linux') setPriority(0, LOWEST_PRIORITY);
const known = importAuditKeys(auditKeys) ?? [];
const keys: AuditKeys = { auditAt: (seq) => auditKeyAt(known, seq) };
const reader = openLogReader(log);

/** Returns the last entry of the range, or the break. */
async function checkRange({ fromSeq, toSeq }: VerifiedRange): Promise<ChainPoint | ChainBreak> {
  const isFirst = fromSeq === 1;
  const entries = await reader.readEntries(isFirst ? fromSeq : fromSeq - 1, toSeq, toSeq - fromSeq + 2);
  const start = isFirst ? CHAIN_START : entries.shift();
  if (start?.seq !== fromSeq - 1) return { entry: fromSeq - 1, timestamp: null, reason: 'the entry is missing' };
  const verifier = new ChainVerifier(keys, start);
  for (const entry of entries) {
    const broken = verifier.next(entry);
    if (broken !== null) return broken;
  }
  const { seq, hmac, timestamp } = verifier.point;
  return seq === toSeq ? { seq, hmac, timestamp } : { entry: seq + 1, timestamp, reason: 'the entry is missing' };
}

parentPort?.on('message', async (range: VerifiedRange) => {
  const before = process.threadCpuUsage();
  let result: RangeResult;
  try {
    const end = await checkRange(range);
    const { user, system } = process.threadCpuUsage(before);
    result = { end, cpuMs: (user + system) / 1000 };
  } catch (error) {
    const failure = storeErrorOf(error);
    if (failure === null) throw error;
    result = { failure: failure.message };
  }
  parentPort?.postMessage(result);
});
