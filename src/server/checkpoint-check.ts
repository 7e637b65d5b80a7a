/** Detects a log that does not extend the newest checkpoint that is kept outside the database. */

import { isHeadInForce } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { CompactRange } from '../crypto/tree.ts';
import { isConsistent, type TreeHead } from '../crypto/tree-proof.ts';
import { readHead } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import type { Head } from '../store/store.ts';
import { IncompleteTreeError, LogTree } from '../vault/log-tree.ts';
import type { CheckpointFile } from './checkpoint-file.ts';
import { type Loss, withoutAnchor } from './loss.ts';

export type CheckpointedLog = Pick<Store, 'run'>;

/** Null if the log extends the newest checkpoint of each file. @throws StartupError, StoreError */
export async function findCheckpointLoss(
  files: readonly CheckpointFile[],
  log: CheckpointedLog,
  keys: VaultKeys,
): Promise<Loss | null> {
  const { head: stored, last } = await log.run(readHead());
  const head = stored !== null && isHeadInForce(keys, stored) ? stored : null;
  for (const file of files) {
    const contents = file.read(keys);
    if (contents === null) continue;
    const { newest } = contents;
    if (newest === null)
      return withoutAnchor(file.path, 'damaged or belongs to another vault', 'Put the right one back');
    // Entries after the head record were added outside.
    if ((head === null || head.seq >= newest.size) && (await isExtended(newest, log, head))) continue;
    const end = head?.seq ?? last?.seq ?? 0;
    const found = end < newest.size ? `and the log ends at ${end}` : 'and the log has other entries there';
    return {
      what: `The database has lost entries of the log: ${file.path} has a signed checkpoint of ${newest.size} entries, ${found}.`,
      remedy: 'Was a backup restored, or the database altered? Restore the entries',
    };
  }
  return null;
}

/**
 * `head` is authentic, and names as many entries or more. WHY a proof against its tree: rows of the log are not
 * authenticated here, and could have been written to fit. WHY the head record alone at its own size: rows that were
 * removed from the log are then no roll-back, and verification reports them.
 */
async function isExtended({ size, root }: TreeHead, log: CheckpointedLog, head: Head | null): Promise<boolean> {
  const later = head === null || head.tree === null ? null : CompactRange.parse(head.tree, head.seq);
  try {
    // Verification reports a head record that is missing or altered.
    if (head === null || later === null) return (await new LogTree(log, size).root()) === root;
    if (later.size === size) return later.root === root;
    const proof = await new LogTree(log, later.size).consistencyProof(size);
    return isConsistent({ size, root }, later, proof);
  } catch (error) {
    if (error instanceof IncompleteTreeError) return false;
    throw error;
  }
}
