/**
 * Detects a rolled-back audit log. It lacks entries that the rollback marker, a checkpoint file or its own entries
 * show. The vault is then read-only until the operator accepts the rollback, which the audit log records.
 */

import { KEYSET_SUBJECT } from '../core/resources.ts';
import { isHeadInForce } from '../crypto/chain.ts';
import { CompactRange, isConsistent, type TreeHead } from '../crypto/tree.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { StartupError } from '../platform/errors.ts';
import { readEntries, readHead } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import { readNewestState } from '../store/recorded-states.ts';
import type { Head } from '../store/stored-data.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import { IncompleteTreeError, LogTree } from '../vault/audit/log-tree.ts';
import { RECOVERY_MODE } from '../vault/ports.ts';
import type { CheckpointFile } from './checkpoint-files.ts';
import type { MarkedEntry, RollbackMarker } from './rollback-marker.ts';

export interface RollbackFinding {
  readonly what: string;
  readonly remedy: string;
}

type ComparedLog = Pick<Store, 'isMultiWriter' | 'run'>;
type CheckpointedLog = Pick<Store, 'run'>;

interface Evidence {
  readonly marker: RollbackMarker;
  readonly checkpointFiles: readonly CheckpointFile[];
}

/** Another node can change the keyset again between two tries. */
const MAX_TRIES = 20;

/** Null if nothing is known to be lost. @throws StartupError, StoreError */
export async function findRollback(
  log: ComparedLog,
  { marker, checkpointFiles }: Evidence,
  keys: VaultKeys,
): Promise<RollbackFinding | null> {
  return (
    (await compareWithMarker(marker, log, keys)) ??
    (await compareWithCheckpoints(checkpointFiles, log, keys)) ??
    (await compareKeyset(log, keys))
  );
}

/** The line for an operator who accepts the rollback; null without one. @throws StartupError if it is not accepted */
export function acceptFinding(finding: RollbackFinding | null, accepts: boolean): string | null {
  if (finding === null) return null;
  if (!accepts) throw new StartupError(`${finding.what} ${finding.remedy}.`);
  return `${finding.what} The operator accepts the loss.`;
}

export function describeFinding({ what, remedy }: RollbackFinding): string {
  return `${what} Until that is solved, the server is in recovery mode: ${RECOVERY_MODE}. ${remedy}; or, to accept the loss, run leasehold audit accept-rollback, or start once with --accept-rollback.`;
}

/** Null if the audit log contains the entry of the marker. */
export async function compareWithMarker(
  marker: RollbackMarker,
  log: ComparedLog,
  keys: VaultKeys,
): Promise<RollbackFinding | null> {
  const { isMultiWriter } = log;
  const { head, last, highestSeq } = await log.run(readHead());
  const found = marker.read();
  if (found === null) {
    // WHY not for a shared log: a new node has no marker. The embedded database has one before its first entry.
    const isEmpty = highestSeq === 0 && (head === null || head.seq === 0);
    return isMultiWriter || isEmpty ? null : withoutEvidence(marker.path, 'missing', 'Put it back');
  }
  const { entry } = found;
  if (entry === null) return unusable(marker.path);
  if (entry.seq === 0) return null;
  // The head record is written with the state, so entries after it were added outside Leasehold.
  const end = head !== null && isHeadInForce(keys, head) ? head : null;
  if (end !== null && end.seq < entry.seq) return lost(entry, `and the log ends at ${end.seq}`);
  const [there] = await log.run(readEntries(entry.seq, entry.seq, 1));
  if (there?.hmac === entry.hmac) return null;
  // If the head record names the entry, only log rows were deleted, which verification reports. WHY not on a shared
  // log: running nodes check the rows of the audit log.
  if (end?.seq === entry.seq && end.hmac === entry.hmac && !isMultiWriter) return null;
  return lost(
    entry,
    there === undefined ? `and the log ends at ${last?.seq ?? 0}` : 'and the log has a different entry there',
  );
}

function lost({ seq }: MarkedEntry, found: string): RollbackFinding {
  return {
    what: `The database has lost entries of the log: this node has seen entry ${seq}, ${found}.`,
    remedy: `Was a backup restored, a file of the database damaged or removed, or a lagging standby promoted? Restore the entries`,
  };
}

/** Null if the audit log extends the newest checkpoint of each file. @throws StartupError, StoreError */
export async function compareWithCheckpoints(
  files: readonly CheckpointFile[],
  log: CheckpointedLog,
  keys: VaultKeys,
): Promise<RollbackFinding | null> {
  const { head: stored, last } = await log.run(readHead());
  const head = stored !== null && isHeadInForce(keys, stored) ? stored : null;
  for (const file of files) {
    const contents = file.read(keys);
    if (contents === null) continue;
    const { newest } = contents;
    if (newest === null) return unusable(file.path);
    // Entries after the head record were added outside Leasehold.
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
 * Whether the audit log extends the tree. `head` is authentic, and covers at least as many entries. WHY a proof against
 * its tree: rows of the audit log are not authenticated here, and could have been written to fit. WHY the head record
 * alone at its own size: then rows that were removed from the audit log are no rollback, and verification reports them.
 */
async function isExtended({ size, root }: TreeHead, log: CheckpointedLog, head: Head | null): Promise<boolean> {
  const later = head === null ? null : CompactRange.parse(head.tree, head.seq);
  try {
    // Verification reports a head record that is missing or modified.
    if (head === null || later === null) return (await new LogTree(log, size).root()) === root;
    if (later.size === size) return later.root === root;
    const proof = await new LogTree(log, later.size).consistencyProof(size);
    return isConsistent({ size, root }, later, proof);
  } catch (error) {
    if (error instanceof IncompleteTreeError) return false;
    throw error;
  }
}

/** Finds a rolled-back keyset: the audit log records each change of the keyset. */
async function compareKeyset(log: ComparedLog, keys: VaultKeys): Promise<RollbackFinding | null> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const recorded = await log.run(readNewestState(KEYSET_SUBJECT), 'urgent');
    if (recorded === null || recorded === keys.state) return null;
    // Another node may have changed the keyset since it was read.
    if (!keys.refresh(await log.run(readStoredKeys(), 'urgent'))) break;
  }
  return {
    what: 'The keyset in the database is not the one that the log records, so key slots and keys that were removed may be in force again.',
    remedy: 'Was the database altered outside? Restore it',
  };
}

function unusable(path: string): RollbackFinding {
  return withoutEvidence(path, 'damaged or belongs to another vault', 'Put the right one back');
}

function withoutEvidence(path: string, state: string, remedy: string): RollbackFinding {
  return { what: `${path} is ${state}, so a loss of log entries cannot be detected.`, remedy };
}
