/** Removes what ended long ago, in small steps beside everything else. */
import type { Store } from '../store/port.ts';
import type { Clock } from '../vault/clock.ts';
import type { ServiceLog } from './logs.ts';

const INTERVAL_MS = 10_000;
const STEP_ROWS = 500;
/** Steps without a pause at most, so that a backlog is worked off without standing in the way. */
const MAX_STEPS = 20;

export function startSweeping(store: Store, clock: Clock, log: ServiceLog): { stop(): void } {
  let isSweeping = false;
  const sweep = async (): Promise<void> => {
    if (isSweeping) return;
    isSweeping = true;
    try {
      for (let step = 0; step < MAX_STEPS; step++) {
        if ((await store.sweep(clock.now(), STEP_ROWS)) < STEP_ROWS) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      log.error('sweeping failed; it is tried again', error);
    } finally {
      isSweeping = false;
    }
  };
  const timer = setInterval(() => void sweep(), INTERVAL_MS).unref();
  return { stop: () => clearInterval(timer) };
}
