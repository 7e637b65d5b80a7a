/**
 * Checks of an idle node: that the log and the database files still exist. Also writes the anchor for the next start.
 */
import type { Ledger } from '../ledger/ledger.ts';
import type { AnchorFile } from './anchor-file.ts';
import type { ServiceLog } from './log.ts';

/** An idle node may miss a loss that is repaired within this time. */
const INTERVAL_MS = 1000;

export function startAnchoring(
  ledger: Ledger,
  anchor: AnchorFile,
  isMultiWriter: boolean,
  logError: ServiceLog['error'],
): { stop(): Promise<void> } {
  const keep = async (): Promise<void> => {
    const { lastSeenEntry } = ledger.memory;
    try {
      // The embedded store writes the anchor with each sync of its log.
      if (isMultiWriter && lastSeenEntry !== null) await anchor.keep(lastSeenEntry);
      await anchor.sync();
    } catch (error) {
      logError('the anchor of the log could not be written; the service retries', error);
    }
  };
  void keep();
  const timer = setInterval(() => {
    void ledger.pollLog(INTERVAL_MS);
    void keep();
  }, INTERVAL_MS).unref();
  return {
    async stop() {
      clearInterval(timer);
      await keep();
    },
  };
}
