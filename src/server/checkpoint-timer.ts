/**
 * Signs a checkpoint when the log has 1,000 new entries or a minute has passed, at most one a second, and at start and
 * stop.
 */
import type { Ledger } from '../ledger/ledger.ts';
import type { Checkpoints } from '../vault/checkpoints.ts';
import type { ServiceLog } from './log.ts';
import { logFailure } from './log-failure.ts';

const INTERVAL_MS = 1000;
const MAX_ENTRIES = 1000;
const MAX_AGE_MS = 60_000;

export function startCheckpointing(
  ledger: Ledger,
  checkpoints: Checkpoints,
  logError: ServiceLog['error'],
): { stop(): Promise<void> } {
  let signedAt = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;
  const sign = async (): Promise<void> => {
    try {
      await checkpoints.sign();
    } catch (error) {
      logFailure(logError, 'a checkpoint of the log could not be signed; the service retries', error);
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
    const isDue = unsigned >= MAX_ENTRIES || (unsigned > 0 && performance.now() - signedAt >= MAX_AGE_MS);
    if (isDue && ledger.state === 'ok') begin();
  }, INTERVAL_MS).unref();
  return {
    /** Call after the last entry. */
    async stop() {
      clearInterval(timer);
      await running;
      if (ledger.state === 'ok') await sign();
    },
  };
}
