/**
 * A transaction that locks the head row first. It takes two round trips: one to lock and load, one to write and commit.
 * INVARIANT: all statements run on the same connection, and the head is updated only if it has not changed since the
 * beginning.
 */
import type { ReadSet } from '../../core/batch-state.ts';
import type { ChallengeId, TokenHash } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import { LAST_ENTRY, toHead, toLastEntry } from '../audit-log.ts';
import { StoreError } from '../errors.ts';
import type { Row } from '../statement.ts';
import type { ClusterState, Head, LoadedView, SeenEntry, StoreTransaction, WriteSet } from '../stored-data.ts';
import { type Connection, withDeadline } from './connection.ts';
import { toStoreError } from './errors.ts';
import { describeMissing, LostEntryError } from './fence.ts';
import { loadRows, readControl } from './loader.ts';
import { PostgresBatchWriter, prepareWrites } from './writer.ts';

/** Longer than the lock time-out of the server: after it, the server is unresponsive. */
const BEGIN_TIMEOUT_MS = 4000;
const COMMIT_TIMEOUT_MS = 5000;
/** Several sequential round trips. */
const PREPARE_TIMEOUT_MS = 15_000;
/**
 * A warning on a commit means that no standby confirmed it, and failover may lose it. Matched by class, because the
 * text is localized. SOURCE: syncrep.c, SyncRepWaitForLSN.
 */
const WARNING_CLASS = /^01/;

/** `seen` is the last entry that this process has seen. @throws StoreError; then no transaction is open */
export async function beginTransaction(
  connection: Connection,
  reads: readonly ReadSet[],
  seen: SeenEntry | null,
): Promise<StoreTransaction> {
  try {
    const opening = lockAndLoad(connection, reads, seen?.seq ?? 0);
    const [, heads, [state], found] = await withDeadline(connection, BEGIN_TIMEOUT_MS, opening);
    if (seen !== null) assertSeen(connection, seen, state ?? {});
    const head = toHead(heads[0]);
    return {
      found,
      shared: {
        ...toClusterState(head, state ?? {}),
        async readControl(afterEpoch) {
          try {
            return await readControl(connection, afterEpoch, head?.epoch ?? 0);
          } catch (error) {
            throw toStoreError(error);
          }
        },
      },
      commit: (batch) => commit(connection, batch, head),
      rollback: () => rollBack(connection),
    };
  } catch (error) {
    await rollBack(connection);
    throw toStoreError(error);
  }
}

function assertSeen(connection: Connection, seen: SeenEntry, state: Row): void {
  const link = typeof state['seen_link'] === 'string' ? state['seen_link'] : null;
  if (link === seen.hmac) return;
  throw new LostEntryError(connection, seen, describeMissing(link, toLastEntry(state)?.seq ?? 0));
}

function lockAndLoad(connection: Connection, reads: readonly ReadSet[], seenSeq: number) {
  return Promise.all([
    connection.query`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`,
    connection.query`SELECT seq, hmac, mac, epoch, tree, control FROM audit_head WHERE id = 1 FOR UPDATE`,
    // WHY a separate statement: it must see what was committed while this transaction waited for the lock.
    readState(connection, seenSeq),
    loadRows(connection, reads),
  ]);
}

function readState(connection: Connection, seenSeq: number) {
  return connection.query`
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
      (SELECT high_water_time FROM vault) AS high_water_time, (SELECT version FROM keyset) AS keyset_version,
      (SELECT hmac FROM audit_entries WHERE seq = ${seenSeq}::bigint) AS seen_link,
      last_seq, last_hmac, last_timestamp
    FROM (VALUES (1)) AS one LEFT JOIN ${LAST_ENTRY} AS last ON true`;
}

/** Takes one round trip and no lock. @throws errors of the driver */
export async function loadUnlocked(connection: Connection, reads: readonly ReadSet[]): Promise<LoadedView> {
  const [, heads, [state], found] = await Promise.all([
    // WHY one snapshot: a row and what the audit log records about it, or a policy, must not be of different moments.
    connection.query`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`,
    connection.query`SELECT seq, hmac, mac, epoch, tree, control FROM audit_head WHERE id = 1`,
    readState(connection, 0),
    loadRows(connection, reads),
    connection.query`COMMIT`,
  ]);
  return { found, shared: toClusterState(toHead(heads[0]), state ?? {}), durable: Promise.resolve() };
}

/** Prepares statements up front, so that the first batch does not hold the lock longer. @throws StoreError */
export async function prepareTransactions(connection: Connection): Promise<void> {
  const retrieval: ReadSet = {
    credential: '' as CredentialPath,
    session: '' as TokenHash,
    challenge: '' as ChallengeId,
  };
  const preparing = connection.prepare(() =>
    Promise.all([lockAndLoad(connection, [retrieval], 0), prepareWrites(connection)]),
  );
  try {
    await withDeadline(connection, PREPARE_TIMEOUT_MS, preparing);
  } catch (error) {
    connection.close();
    throw toStoreError(error);
  }
}

function toClusterState(head: Head | null, state: Row): ClusterState {
  return {
    head,
    now: Number(state['now']),
    highWaterTime: Number(state['high_water_time'] ?? 0),
    last: toLastEntry(state),
    keysetVersion: Number(state['keyset_version'] ?? 0),
  };
}

async function commit(connection: Connection, batch: WriteSet, before: Head | null) {
  const writer = new PostgresBatchWriter(connection, batch);
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

/** It closes the connection on failure, which ends the transaction. */
async function rollBack(connection: Connection): Promise<void> {
  if (!connection.isOpen) return;
  await withDeadline(connection, BEGIN_TIMEOUT_MS, connection.query`ROLLBACK`).catch(() => connection.close());
}
