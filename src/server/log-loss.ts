/**
 * What a log lacks of what its anchors, its checkpoints and its own entries show. The service then serves only what
 * shows the log, until the operator accepts the loss, which the log records.
 */

import { KEYSET_SUBJECT } from '../core/state.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { readNewestState } from '../store/recorded-states.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import type { AnchorFile } from './anchor-file.ts';
import { findCheckpointLoss } from './checkpoint-check.ts';
import type { CheckpointFile } from './checkpoint-file.ts';
import type { Loss } from './loss.ts';
import { type AnchoredLog, findRollback } from './rollback-check.ts';

/** Between two tries another node can change the keyset again. */
const MAX_TRIES = 20;

interface Anchors {
  readonly anchor: AnchorFile;
  readonly checkpointFiles: readonly CheckpointFile[];
}

/** Null if nothing is known to be lost. @throws StartupError, StoreError */
export async function findLogLoss(
  log: AnchoredLog,
  { anchor, checkpointFiles }: Anchors,
  keys: VaultKeys,
): Promise<Loss | null> {
  return (
    (await findRollback(anchor, log, keys)) ??
    (await findCheckpointLoss(checkpointFiles, log, keys)) ??
    (await findFormerKeyset(log, keys))
  );
}

/** The log records each change of the keyset, so that an earlier one that was put back is found. */
async function findFormerKeyset(log: AnchoredLog, keys: VaultKeys): Promise<Loss | null> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const recorded = await log.run(readNewestState(KEYSET_SUBJECT));
    if (recorded === null || recorded === keys.state) return null;
    // Another node may have changed the keyset since it was read.
    if (!keys.refresh(await log.run(readStoredKeys()))) break;
  }
  return {
    what: 'The keyset in the database is not the one that the log records, so key slots and keys that were removed may be in force again.',
    remedy: 'Was the database altered outside? Restore it',
  };
}
