/** A thread of the verification: checks one range of the log over a connection of its own, in constant memory. */
import { parentPort, workerData } from 'node:worker_threads';
import { importAuditKey } from '../crypto/keys.ts';
import { openLogReader } from '../store/logreader.ts';
import type { LogLocation } from '../store/port.ts';
import { type Break, CHAIN_START, ChainCheck, type ChainPoint } from './chaincheck.ts';

export interface RangeTask {
  readonly log: LogLocation;
  /** Base64. */
  readonly auditKey: string;
  readonly fromSeq: number;
  readonly toSeq: number;
}

/** How far the chain was followed, or where it broke; `no start` where the entry before the range is missing. */
export type RangeResult = ChainPoint | Break | 'no start';

const STEP_ENTRIES = 1000;

function checkRange({ log, auditKey, fromSeq, toSeq }: RangeTask): RangeResult {
  const reader = openLogReader(log);
  try {
    const start = fromSeq === 1 ? CHAIN_START : reader.entries(fromSeq - 1, fromSeq - 1, 1)[0];
    if (start === undefined) return 'no start';
    const check = new ChainCheck({ audit: importAuditKey(auditKey) }, start);
    while (check.point.seq < toSeq) {
      const entries = reader.entries(check.point.seq + 1, toSeq, STEP_ENTRIES);
      if (entries.length === 0) return missingBehind(check.point);
      for (const entry of entries) {
        const broken = check.next(entry);
        if (broken !== null) return broken;
      }
    }
    const { seq, hmac, timestamp } = check.point;
    return { seq, hmac, timestamp };
  } finally {
    reader.close();
  }
}

/** The rest of the range is gone: a later range, or the head record, shows the time of what stands behind it. */
function missingBehind({ seq, timestamp }: ChainPoint): Break {
  return { entry: seq + 1, timestamp, why: 'the entry is missing' };
}

parentPort?.postMessage(checkRange(workerData));
