/** Removes what ended long ago, in small steps beside everything else. */
import { type Store, StoreFailure } from '../store/port.ts';
import type { Clock } from '../vault/clock.ts';
import type { ServiceLog } from './logs.ts';

const INTERVAL_MS = 10_000;
const STEP_ROWS = 500;
/** Steps without a pause at most, so that a backlog is worked off without standing in the way. */
const MAX_STEPS = 20;

/** `stop` resolves when nothing is swept any more. `onBroken` is told when the storage failed, so that the process must end. */
export function startSweeping(
  store: Store,
  clock: Clock,
  log: ServiceLog,
  onBroken: (failure: StoreFailure) => void,
  intervalMs: number = INTERVAL_MS,
): { stop(): Promise<void> } {
  let sweeping: Promise<void> | null = null;
  let isStopped = false;
  const sweep = async (): Promise<void> => {
    try {
      for (let step = 0; step < MAX_STEPS; step++) {
        if (isStopped || (await store.sweep(clock.now(), STEP_ROWS)) < STEP_ROWS) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      if (error instanceof StoreFailure && error.kind === 'broken') onBroken(error);
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
