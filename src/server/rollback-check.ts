/** Detects a log that has lost acknowledged entries: it must contain the entry of the anchor. */

import { isHeadInForce } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { readEntries, readHead } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import type { AnchoredEntry, AnchorFile } from './anchor-file.ts';
import { type Loss, withoutAnchor } from './loss.ts';

/** A log in the directory of its anchor, or one that several nodes share. */
export type AnchoredLog = Pick<Store, 'isMultiWriter' | 'run'>;

/** Null if the log contains the entry of the anchor. */
export async function findRollback(anchor: AnchorFile, log: AnchoredLog, keys: VaultKeys): Promise<Loss | null> {
  const { isMultiWriter } = log;
  const { head, last, highestSeq } = await log.run(readHead());
  const found = anchor.read();
  if (found === null) {
    // WHY not for a shared log: a new node has no anchor. The embedded database has one before its first entry.
    const isEmpty = highestSeq === 0 && (head === null || head.seq === 0);
    return isMultiWriter || isEmpty ? null : withoutAnchor(anchor.path, 'missing', 'Put it back');
  }
  const { entry } = found;
  if (entry === null) {
    return withoutAnchor(anchor.path, 'damaged or belongs to another vault', 'Put the right one back');
  }
  if (entry.seq === 0) return null;
  // The head record is written with the state, so entries after it were added outside.
  const end = head !== null && isHeadInForce(keys, head) ? head : null;
  if (end !== null && end.seq < entry.seq) return lost(entry, `and the log ends at ${end.seq}`);
  const [there] = await log.run(readEntries(entry.seq, entry.seq, 1));
  if (there?.hmac === entry.hmac) return null;
  // If the head record names the entry, only log rows were deleted, which verification reports. WHY not on a shared
  // log: running nodes check the rows of the log.
  if (end?.seq === entry.seq && end.hmac === entry.hmac && !isMultiWriter) return null;
  return lost(
    entry,
    there === undefined ? `and the log ends at ${last?.seq ?? 0}` : 'and the log has a different entry there',
  );
}

function lost({ seq }: AnchoredEntry, found: string): Loss {
  return {
    what: `The database has lost entries of the log: this node has seen entry ${seq}, ${found}.`,
    remedy: `Was a backup restored, a file of the database damaged or removed, or a lagging standby promoted? Restore the entries`,
  };
}
