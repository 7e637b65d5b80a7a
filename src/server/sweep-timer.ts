/** Deletes rows whose retention has ended, in small steps, so that requests come first. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../ledger/clock.ts';
import { StoreError } from '../store/errors.ts';
import type { Store } from '../store/port.ts';
import type { ServiceLog } from './log.ts';

const INTERVAL_MS = 10_000;
/** A few milliseconds of work; the store also limits the time. */
const STEP_ROWS = 500;
/**
 * Between two steps, so that batches of callers come first. It still deletes more leases per second than callers can
 * get.
 */
const PAUSE_MS = 10;

/**
 * `stop` resolves when the running step has ended. `onStorageFailure` is called when the process must end because the
 * storage failed.
 */
export function startSweeping(
  store: Store,
  clock: Clock,
  log: ServiceLog,
  onStorageFailure: (failure: StoreError) => void,
  intervalMs: number = INTERVAL_MS,
): { stop(): Promise<void> } {
  let sweeping: Promise<void> | null = null;
  let isStopped = false;
  const sweep = async (): Promise<void> => {
    try {
      while (!isStopped && !(await store.sweep(clock.now(), STEP_ROWS)).isDone) await sleep(PAUSE_MS);
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'fatal') onStorageFailure(error);
      else log.error('sweeping failed; the service retries', error);
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
