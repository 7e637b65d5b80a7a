/**
 * A turn: a transaction that has the head's row locked from its beginning. Two round trips, whatever its size: one that locks and
 * loads, one that writes and commits. INVARIANT: nothing of it ever runs on another connection, and the head is written only where
 * it is what the turn was opened with.
 */

import type { ReadSet } from '../../core/batch-state.ts';
import type { ChallengeId, TokenHash } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { Row } from '../decode-rows.ts';
import {
  type ClusterView,
  type Head,
  type LastEntry,
  StoreError,
  type StoreTransaction,
  type WriteSet,
} from '../store.ts';
import { type Connection, withDeadline } from './connection.ts';
import { readControl } from './control-changes.ts';
import { toStoreError } from './errors.ts';
import { loadKeys } from './loader.ts';
import { BatchWriter, prepareWrites } from './writer.ts';

/** Longer than the server's own time-out for the lock: then it does not answer at all. */
const BEGIN_TIMEOUT_MS = 4000;
const COMMIT_TIMEOUT_MS = 5000;
/** Several round trips, one after the other. */
const PREPARE_TIMEOUT_MS = 15_000;
/**
 * A warning with a commit: no standby has confirmed it, and it may be lost with this server. By its class, because the words are in
 * the server's language. SOURCE: syncrep.c, SyncRepWaitForLSN.
 */
const WARNING_CLASS = /^01/;

/** @throws StoreError; then no turn is open */
export async function beginTransaction(
  connection: Connection,
  keys: readonly ReadSet[],
  knownSeq: number,
): Promise<StoreTransaction> {
  try {
    const opening = lockAndLoad(connection, keys, knownSeq);
    const [, heads, [state], found] = await withDeadline(connection, BEGIN_TIMEOUT_MS, opening);
    const head = toHead(heads[0]);
    return {
      found,
      shared: toShared(connection, head, state ?? {}),
      commit: (batch) => commit(connection, batch, head),
      rollback: () => rollBack(connection),
    };
  } catch (error) {
    await rollBack(connection);
    throw toStoreError(error);
  }
}

function lockAndLoad(connection: Connection, keys: readonly ReadSet[], knownSeq: number) {
  return Promise.all([
    connection.query`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`,
    connection.query`SELECT seq, hmac, mac, epoch FROM audit_head WHERE id = 1 FOR UPDATE`,
    // WHY its own statement: it must see what was committed while this turn waited for the lock.
    connection.query`
      SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
        (SELECT high_water_time FROM vault) AS high_water_time,
        (SELECT hmac FROM audit_entries WHERE seq = ${knownSeq}::bigint) AS known_link,
        last.seq AS last_seq, last.hmac AS last_hmac, last.timestamp AS last_timestamp
      FROM (VALUES (1)) AS one
      LEFT JOIN (SELECT seq, hmac, timestamp FROM audit_entries ORDER BY seq DESC LIMIT 1) AS last ON true`,
    loadKeys(connection, keys),
  ]);
}

/** Has what a retrieval needs ready, so that the first turn holds the lock no longer than any other. @throws StoreError */
export async function prepareTransactions(connection: Connection): Promise<void> {
  const challenge = '' as ChallengeId;
  const retrieval: ReadSet = {
    credential: '' as CredentialPath,
    version: 'newest',
    session: '' as TokenHash,
    challenge,
  };
  try {
    await withDeadline(
      connection,
      PREPARE_TIMEOUT_MS,
      connection.prepare(() => Promise.all([lockAndLoad(connection, [retrieval], 0), prepareWrites(connection)])),
    );
  } catch (error) {
    connection.close();
    throw toStoreError(error);
  }
}

/** Of columns with `last_` in front. */
export function toLastEntry(row: Row): LastEntry | null {
  const { last_seq: seq, last_hmac: hmac, last_timestamp: timestamp } = row;
  return typeof seq === 'number' ? { seq, hmac: String(hmac), timestamp: String(timestamp) } : null;
}

export function toHead(row: Row | undefined): Head | null {
  return row === undefined
    ? null
    : { seq: Number(row['seq']), hmac: String(row['hmac']), mac: String(row['mac']), epoch: Number(row['epoch']) };
}

function toShared(connection: Connection, head: Head | null, state: Row): ClusterView {
  return {
    head,
    now: Number(state['now']),
    highWaterTime: Number(state['high_water_time'] ?? 0),
    last: toLastEntry(state),
    knownLink: typeof state['known_link'] === 'string' ? state['known_link'] : null,
    async readControl(behindEpoch) {
      try {
        return await readControl(connection, behindEpoch, head?.epoch ?? 0);
      } catch (error) {
        throw toStoreError(error);
      }
    },
  };
}

async function commit(connection: Connection, batch: WriteSet, before: Head | null) {
  const writer = new BatchWriter(connection, batch);
  connection.takeNotices();
  try {
    await withDeadline(connection, COMMIT_TIMEOUT_MS, writer.commit(before));
  } catch (error) {
    await rollBack(connection);
    throw toStoreError(error, true);
  }
  if (connection.takeNotices().some((notice) => WARNING_CLASS.test(notice))) {
    throw new StoreError('unknown', 'PostgreSQL: committed, but no standby has confirmed it');
  }
  return { durable: Promise.resolve() };
}

/** Where that fails the connection is no longer used, and the server ends the transaction with it. */
async function rollBack(connection: Connection): Promise<void> {
  if (!connection.isOpen) return;
  await withDeadline(connection, BEGIN_TIMEOUT_MS, connection.query`ROLLBACK`).catch(() => connection.close());
}
