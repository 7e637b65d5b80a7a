/**
 * Whether a log has lost entries that were acknowledged: it must reach the anchor. A start on one that does not is refused, unless the
 * operator accepts it, which the entry of that start records.
 */

import { statSync } from 'node:fs';
import { isHeadAuthentic } from '../crypto/chain.ts';
import { timingSafeEqualText, type VaultKeys } from '../crypto/keys.ts';
import { StartupError } from '../platform/errors.ts';
import { SqliteLogEnd } from '../store/sqlite/log-end.ts';
import type { Store } from '../store/store.ts';
import type { AnchoredEntry, AnchorFile } from './anchor-file.ts';

/** A log that lies in the directory of its anchor, or that several nodes share. */
export interface AnchoredLog {
  readonly end: Pick<Store, 'readHead' | 'readEntries'>;
  readonly isShared: boolean;
  readonly keys: VaultKeys;
}

interface Loss {
  /** What happened, in a sentence. */
  readonly what: string;
  /** What to do about it but to accept it. */
  readonly remedy: string;
}

const ACCEPT = 'start once with --accept-rollback';

/**
 * Resolves to what to say of a loss that the operator accepts, or null.
 * @throws StartupError for one that the operator does not accept
 */
export async function checkRollback(anchor: AnchorFile, log: AnchoredLog, accepts: boolean): Promise<string | null> {
  const loss = await findLoss(anchor, log);
  if (loss === null) return null;
  if (accepts) return `${loss.what} It goes on all the same (--accept-rollback).`;
  throw new StartupError(`${loss.what} ${loss.remedy}`);
}

/**
 * The same for the embedded database before it is opened, where a write-ahead log was left: opening would drop what cannot be read of
 * it. @throws StartupError
 */
export async function checkRollbackAtRest(file: string, anchor: AnchorFile, keys: VaultKeys): Promise<void> {
  if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  const end = SqliteLogEnd.open(file);
  if (end === null) return;
  try {
    const keyCheck = await end.readRootKeyCheck();
    if (keyCheck === null || !timingSafeEqualText(keyCheck, keys.checkValue)) return;
    await checkRollback(anchor, { end, isShared: false, keys }, false);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    // Opening the store says what is wrong with it.
  } finally {
    end.close();
  }
}

async function findLoss(anchor: AnchorFile, { end, isShared, keys }: AnchoredLog): Promise<Loss | null> {
  const { head, last, highestSeq } = await end.readHead();
  const found = anchor.read();
  if (found === null) {
    // WHY a shared log may lack it: a new node has none. The embedded database has one before its first entry.
    const isEmpty = highestSeq === 0 && (head === null || head.seq === 0);
    return isShared || isEmpty ? null : missing(anchor.path);
  }
  const { entry } = found;
  if (entry === null) return damaged(anchor.path);
  if (entry.seq === 0) return null;
  const [there] = await end.readEntries(entry.seq, entry.seq, 1);
  if (there?.hmac === entry.hmac) return null;
  // The head record is written with the state: where it names the entry, rows of the log alone were removed, which verification shows.
  // WHY not on a shared log: nodes that run hold the log to its rows.
  const isHeadThere = head?.seq === entry.seq && head.hmac === entry.hmac && isHeadAuthentic(keys.audit, head);
  if (isHeadThere && !isShared) return null;
  return lost(
    entry,
    there === undefined ? `and the log ends at ${last?.seq ?? 0}` : 'and the log has another one there',
  );
}

function lost({ seq }: AnchoredEntry, found: string): Loss {
  return {
    what: `The database has lost entries of the log: this node has seen entry ${seq}, ${found}.`,
    remedy: `Was a backup restored, a file of the database damaged or removed, or a standby promoted that lagged behind? Bring the entries back; or, to go on without them, ${ACCEPT}.`,
  };
}

function missing(path: string): Loss {
  return {
    what: `${path} is missing, so that nothing shows whether the log has lost entries.`,
    remedy: `Put it back; or, to trust the database as it is, ${ACCEPT}.`,
  };
}

function damaged(path: string): Loss {
  return {
    what: `${path} is damaged or belongs to another vault, so that nothing shows whether the log has lost entries.`,
    remedy: `Put the right one back; or, to trust the database as it is, ${ACCEPT}.`,
  };
}
