/**
 * Detects a log that has lost acknowledged entries: it must contain the entry of the anchor. Otherwise the service
 * does not start, unless the operator accepts the loss, which the log entry of that start records.
 */

import { statSync } from 'node:fs';
import { isHeadAuthentic } from '../crypto/chain.ts';
import { timingSafeEqualText, type VaultKeys } from '../crypto/keys.ts';
import { StartupError } from '../platform/errors.ts';
import type { Store } from '../store/sql-store.ts';
import { SqliteLogFile } from '../store/sqlite/log-file.ts';
import type { AnchoredEntry, AnchorFile } from './anchor-file.ts';
import { wrongRootKey } from './root-key.ts';

/** A log in the directory of its anchor, or one that several nodes share. */
export interface AnchoredLog {
  readonly end: Pick<Store, 'readHead' | 'readEntries'>;
  readonly isMultiWriter: boolean;
  readonly keys: VaultKeys;
}

interface OwnKeys {
  readonly anchor: AnchorFile;
  readonly keys: VaultKeys;
  readonly rootKeyFile: string;
}

interface Loss {
  /** The loss, in one sentence. */
  readonly what: string;
  /** The alternatives to accepting the loss. */
  readonly remedy: string;
}

const ACCEPT = 'start once with --accept-rollback';

/** Resolves to a warning about a loss that the operator accepts, or null. @throws StartupError for any other loss */
export async function checkRollback(anchor: AnchorFile, log: AnchoredLog, accepts: boolean): Promise<string | null> {
  const loss = await findLoss(anchor, log);
  if (loss === null) return null;
  if (accepts) return `${loss.what} The service starts anyway (--accept-rollback).`;
  throw new StartupError(`${loss.what} ${loss.remedy}`);
}

/**
 * Checks root key and log of an embedded database with a left-over write-ahead log, before it is opened: opening would
 * discard an unreadable part of that log. @throws StartupError
 */
export async function checkAtRest(
  file: string,
  { anchor, keys, rootKeyFile }: OwnKeys,
  acceptsRollback: boolean,
): Promise<void> {
  if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  let end: SqliteLogFile | null = null;
  try {
    end = new SqliteLogFile(file);
    const keyCheck = await end.readRootKeyCheck();
    if (keyCheck === null) return;
    if (!timingSafeEqualText(keyCheck, keys.checkValue)) throw wrongRootKey(rootKeyFile);
    await checkRollback(anchor, { end, isMultiWriter: false, keys }, acceptsRollback);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    // Opening the store reports the error.
  } finally {
    end?.close();
  }
}

async function findLoss(anchor: AnchorFile, { end, isMultiWriter, keys }: AnchoredLog): Promise<Loss | null> {
  const { head, last, highestSeq } = await end.readHead();
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
  const [there] = await end.readEntries(entry.seq, entry.seq, 1);
  if (there?.hmac === entry.hmac) return null;
  // The head record is written with the state. If it names the entry, only log rows were deleted, which verification
  // reports. WHY not on a shared log: running nodes check the rows of the log.
  const isHeadThere = head?.seq === entry.seq && head.hmac === entry.hmac && isHeadAuthentic(keys.audit, head);
  if (isHeadThere && !isMultiWriter) return null;
  return lost(
    entry,
    there === undefined ? `and the log ends at ${last?.seq ?? 0}` : 'and the log has a different entry there',
  );
}

function lost({ seq }: AnchoredEntry, found: string): Loss {
  return {
    what: `The database has lost entries of the log: this node has seen entry ${seq}, ${found}.`,
    remedy: `Was a backup restored, a file of the database damaged or removed, or a lagging standby promoted? Restore the entries; or, to continue without them, ${ACCEPT}.`,
  };
}

/** The loss of an anchor, which hides a loss of entries. */
function withoutAnchor(path: string, state: string, remedy: string): Loss {
  return {
    what: `${path} is ${state}, so a loss of log entries cannot be detected.`,
    remedy: `${remedy}; or, to trust the database as it is, ${ACCEPT}.`,
  };
}
