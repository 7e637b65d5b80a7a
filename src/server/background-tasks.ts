/**
 * Background tasks of an open vault: signing checkpoints, writing the rollback marker, deleting rows whose retention
 * has ended, and checking the state against the audit log once after startup.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../ledger/clock.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { StoreError } from '../store/errors.ts';
import type { Store } from '../store/port.ts';
import type { Checkpoints } from '../vault/audit/checkpoints.ts';
import type { StateChecker } from '../vault/audit/verification/state-scan.ts';
import { logFailure, type ServerLog } from './log.ts';
import type { RollbackMarker } from './rollback-marker.ts';

interface BackgroundTask {
  /** Resolves when the running step has ended. */
  stop(): Promise<void>;
}

const CHECKPOINT_INTERVAL_MS = 1000;
const MAX_UNSIGNED_ENTRIES = 1000;
const MAX_UNSIGNED_MS = 60_000;

/**
 * Signs a checkpoint at startup and shutdown, and when the audit log has 1,000 new entries or a minute has passed. It
 * signs at most one a second.
 */
export function startCheckpointing(
  ledger: Ledger,
  checkpoints: Checkpoints,
  logError: ServerLog['error'],
): BackgroundTask {
  let signedAt = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;
  const sign = async (): Promise<void> => {
    try {
      await checkpoints.sign();
    } catch (error) {
      logFailure(logError, 'a checkpoint of the audit log could not be signed; the server retries', error);
    }
    signedAt = performance.now();
  };
  const begin = (): void => {
    running ??= sign().finally(() => {
      running = null;
    });
  };
  begin();
  const timer = setInterval(() => {
    const unsigned = ledger.memory.tip.seq - (checkpoints.newest?.size ?? 0);
    const isDue = unsigned >= MAX_UNSIGNED_ENTRIES || (unsigned > 0 && performance.now() - signedAt >= MAX_UNSIGNED_MS);
    if (isDue && ledger.state === 'ok') begin();
  }, CHECKPOINT_INTERVAL_MS).unref();
  return {
    /** Call after the last entry. */
    async stop() {
      clearInterval(timer);
      await running;
      if (ledger.state === 'ok') await sign();
    },
  };
}

/** Interval between checks. An idle node may miss a loss that is repaired within this time. */
const MARKER_INTERVAL_MS = 1000;

/** Checks that the database files of an idle node exist, and writes the marker for the next startup. */
export function startMarking(
  ledger: Ledger,
  marker: RollbackMarker,
  isMultiWriter: boolean,
  logError: ServerLog['error'],
): BackgroundTask {
  const keep = async (): Promise<void> => {
    const { lastSeenEntry } = ledger.memory;
    try {
      // The embedded store writes the marker with each sync of its write-ahead log.
      if (isMultiWriter && lastSeenEntry !== null) await marker.keep(lastSeenEntry);
      await marker.sync();
    } catch (error) {
      logError('the rollback marker could not be written; the server retries', error);
    }
  };
  void keep();
  const timer = setInterval(() => {
    void ledger.pollLog(MARKER_INTERVAL_MS);
    void keep();
  }, MARKER_INTERVAL_MS).unref();
  return {
    async stop() {
      clearInterval(timer);
      await keep();
    },
  };
}

const SWEEP_INTERVAL_MS = 10_000;
/** Rows per step, a few milliseconds of work; the store also limits the time. */
const SWEEP_ROWS = 500;
/**
 * The pause between two steps, so that batches of requests come first. Even so, more leases are deleted per second than
 * agents can obtain.
 */
const SWEEP_PAUSE_MS = 10;

/**
 * Deletes rows whose retention has ended, in small steps, so that requests come first. `onStorageFailure` is called
 * when the process must end because the storage failed.
 */
export function startSweeping(
  store: Store,
  clock: Clock,
  log: ServerLog,
  onStorageFailure: (failure: StoreError) => void,
  intervalMs: number = SWEEP_INTERVAL_MS,
): BackgroundTask {
  let sweeping: Promise<void> | null = null;
  let isStopped = false;
  const sweep = async (): Promise<void> => {
    try {
      while (!isStopped && !(await store.sweep(clock.now(), SWEEP_ROWS)).isDone) await sleep(SWEEP_PAUSE_MS);
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'fatal') onStorageFailure(error);
      else logFailure(log.error, 'sweeping failed; the server retries', error);
    }
  };
  const begin = (): void => {
    sweeping ??= sweep().finally(() => {
      sweeping = null;
    });
  };
  const timer = setInterval(begin, intervalMs).unref();
  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await sweeping;
    },
  };
}

const MAX_NAMED = 5;

/** Checks the state against the audit log once, slowly, and logs one line if a row does not match its entries. */
export function startStateCheck(checker: StateChecker, log: ServerLog): BackgroundTask {
  const stopping = new AbortController();
  const checking = checker.checkSlowly(stopping.signal).then(
    ({ problemCount, problems }) => {
      if (problemCount === 0) return;
      const named = problems.slice(0, MAX_NAMED).map(({ subject, problem }) => `${subject} (${problem})`);
      log.warn(
        `${problemCount} rows do not match the audit log and have no effect: ${named.join(', ')}. leasehold doctor --state lists them`,
      );
    },
    (error: unknown) => {
      if (stopping.signal.aborted) return;
      logFailure(log.error, 'the state could not be checked', error);
    },
  );
  return {
    async stop() {
      stopping.abort();
      await checking;
    },
  };
}
