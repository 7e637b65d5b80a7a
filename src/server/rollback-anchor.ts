/**
 * What a node checks and keeps where nobody calls it: that the log and the files of its database are still there, and the anchor of the
 * log for the next start.
 */
import type { Ledger } from '../ledger/ledger.ts';
import type { AnchorFile } from './anchor-file.ts';
import type { ServiceLog } from './log.ts';

/** A loss that is repaired in less time may go unnoticed by a node that nobody calls. */
const INTERVAL_MS = 1000;

export function startAnchoring(
  ledger: Ledger,
  anchor: AnchorFile,
  isShared: boolean,
  logError: ServiceLog['error'],
): { stop(): Promise<void> } {
  const keep = async (): Promise<void> => {
    const { lastSeenEntry } = ledger.memory;
    try {
      // The embedded store keeps the anchor itself, with each sync of its log.
      if (isShared && lastSeenEntry !== null) await anchor.keep(lastSeenEntry);
      await anchor.sync();
    } catch (error) {
      logError('the anchor of the log could not be written; it is tried again', error);
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
