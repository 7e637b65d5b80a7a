/** Removes what ended long ago, in small steps beside everything else. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../ledger/clock.ts';
import { type Store, StoreError } from '../store/store.ts';
import type { ServiceLog } from './log.ts';

const INTERVAL_MS = 10_000;
/** Some milliseconds of work; the store also looks at the time. */
const STEP_ROWS = 500;
/** Between two steps, so that callers' turns go first. It still removes more in a second than can be retrieved in one. */
const PAUSE_MS = 10;

/** `stop` resolves when nothing is swept any more. `onBroken` is told when the storage failed, so that the process must end. */
export function startSweeping(
  store: Store,
  clock: Clock,
  log: ServiceLog,
  onBroken: (failure: StoreError) => void,
  intervalMs: number = INTERVAL_MS,
): { stop(): Promise<void> } {
  let sweeping: Promise<void> | null = null;
  let isStopped = false;
  const sweep = async (): Promise<void> => {
    try {
      while (!isStopped && !(await store.sweep(clock.now(), STEP_ROWS)).isDone) await sleep(PAUSE_MS);
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'fatal') onBroken(error);
      else log.error('sweeping failed; it is tried again', error);
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
