/** A node's eye on the log that it shares with others: looked at even where nobody asks, and kept for the next start. */
import type { Ledger } from '../vault/ledger.ts';
import type { ServiceLog } from './logs.ts';
import type { SeenLog } from './seenlog.ts';

/** What was lost in less is what a node that nobody asked can't know of. */
const LOOK_MS = 1000;
/** Each time a file is synced. */
const KEEP_MS = 10_000;

export function startWatching(ledger: Ledger, seenLog: SeenLog, log: ServiceLog): { stop(): void } {
  const keep = (): void => {
    try {
      seenLog.write(ledger.memory.known);
    } catch (error) {
      log.error('the last entry that was seen could not be kept; it is tried again', error);
    }
  };
  keep();
  const looking = setInterval(() => void ledger.lookAround(LOOK_MS), LOOK_MS).unref();
  const keeping = setInterval(keep, KEEP_MS).unref();
  return {
    stop() {
      clearInterval(looking);
      clearInterval(keeping);
      keep();
    },
  };
}
