/** A thread of the verification: checks ranges of the log over a connection of its own, in constant memory. */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { CHAIN_START, type ChainPoint } from '../../crypto/chain.ts';
import { importAuditKey } from '../../crypto/keys.ts';
import { openLogReader } from '../../store/log-reader.ts';
import type { LogLocation, LogReader } from '../../store/store.ts';
import { type ChainBreak, ChainVerifier, earlierBreak } from './chain-verifier.ts';
import { type Range, STEP_ENTRIES, WorkQueue } from './work-queue.ts';

export interface RangesTask {
  readonly log: LogLocation;
  /** Base64. */
  readonly auditKey: string;
  readonly lastSeq: number;
  readonly shared: WorkQueue['numbers'];
}

/** What a thread found in the ranges that it took. */
export interface Findings {
  readonly broken: ChainBreak | null;
  /** The end of the last range that was whole; null where there was none. */
  readonly end: ChainPoint | null;
}

const LOWEST_PRIORITY = 19;

async function checkRanges({ log, auditKey, lastSeq, shared }: RangesTask): Promise<Findings> {
  const share = new WorkQueue(lastSeq, shared);
  const keys = { audit: importAuditKey(auditKey) };
  const reader = await openLogReader(log);
  try {
    let broken: ChainBreak | null = null;
    let end: ChainPoint | null = null;
    for (let range = share.take(); range !== null; range = share.take()) {
      const found = await checkRange(reader, keys, range, share);
      if ('entry' in found) {
        broken = earlierBreak(broken, found);
        share.stopTaking();
      } else {
        end = found;
      }
    }
    return { broken, end };
  } finally {
    reader.close();
  }
}

/** How far the chain was followed, or where it broke. */
async function checkRange(
  reader: LogReader,
  keys: ConstructorParameters<typeof ChainVerifier>[0],
  { fromSeq, toSeq }: Range,
  share: WorkQueue,
): Promise<ChainPoint | ChainBreak> {
  const [start] = fromSeq === 1 ? [CHAIN_START] : await reader.entries(fromSeq - 1, fromSeq - 1, 1);
  if (start === undefined) return { entry: fromSeq - 1, timestamp: null, reason: 'the entry is missing' };
  const check = new ChainVerifier(keys, start);
  while (check.point.seq < toSeq && !share.isOver) {
    const startedAt = performance.now();
    const entries = await reader.entries(check.point.seq + 1, toSeq, STEP_ENTRIES);
    if (entries.length === 0) return missingBehind(check.point);
    for (const entry of entries) {
      const broken = check.next(entry);
      if (broken !== null) return broken;
    }
    share.stepDone();
    share.throttle(performance.now() - startedAt);
  }
  const { seq, hmac, timestamp } = check.point;
  return { seq, hmac, timestamp };
}

/** The rest of the range is gone: a later range, or the head record, shows the time of what stands behind it. */
function missingBehind({ seq, timestamp }: ChainPoint): ChainBreak {
  return { entry: seq + 1, timestamp, reason: 'the entry is missing' };
}

// On Linux a priority is a thread's own; elsewhere the whole service would get it.
if (process.platform === 'linux') setPriority(0, LOWEST_PRIORITY);
parentPort?.postMessage(await checkRanges(workerData));
