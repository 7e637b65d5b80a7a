/** Verification in threads of a log whose connections are lost during reads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entryMac } from '../../src/crypto/chain.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { GENESIS_MAC } from '../../src/vault/audit/audit-entry.ts';
import { verifyInParallel } from '../../src/vault/audit/verification/verification-threads.ts';
import { anEntry, KEYS } from '../contract/rows.ts';
import { keysFrom } from '../crypto/vectors.ts';
import { newDatabase } from '../kit/database.ts';
import { headOf } from '../kit/head.ts';
import { querySql } from '../kit/postmaster.ts';
import { until } from '../kit/processes.ts';
import { lengthenLog } from '../vault/verification-log.ts';

const ENTRIES = 200_500;
/** Locks the log, waits until a query waits for the lock, and ends its connection. */
const TERMINATE_ONE_READER = `DO $$
  DECLARE reader integer;
  BEGIN
    LOCK TABLE leasehold.audit_entries IN ACCESS EXCLUSIVE MODE;
    WHILE reader IS NULL LOOP
      PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
      SELECT pid INTO reader FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1;
    END LOOP;
    PERFORM pg_terminate_backend(reader, 10000);
  END $$`;
/** A row once that lock is held. */
const LOCKED = `SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted
  AND relation = 'leasehold.audit_entries'::regclass`;

test('a thread with a lost connection ends the others, whatever their remaining work', async (t) => {
  const url = await newDatabase(t);
  const store = await PostgresStore.open(parseAddress(url));
  t.after(() => store.close());
  const keys = keysFrom(1);
  const head = headOf(keys.audit, []);
  await store.initialise(keys.checkValue, head, 0, KEYS);
  const entry = anEntry(1);
  const hmac = entryMac(keys.audit, GENESIS_MAC, entry);
  const turn = await store.begin([]);
  const first = headOf(keys.audit, [hmac]);
  await turn.commit({ entries: [{ ...entry, hmac }], head: first, treeNodes: [], changes: [], accesses: new Map() });
  await lengthenLog(store, keys, ENTRIES);
  const pids = async (): Promise<number[]> => {
    const sql = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    return (await querySql(url, sql)).map((row) => Number(row['pid']));
  };
  const before = await pids();
  // ORDER: before the threads begin. On a busy machine they might otherwise end before the lock is held.
  const terminating = querySql(url, TERMINATE_ONE_READER);
  await until(
    async () => (await querySql(url, LOCKED)).length > 0,
    120_000,
    () => 'the log is not locked',
  );
  let checked = 0;
  const verification = verifyInParallel(
    { store, keys },
    ENTRIES,
    new AbortController().signal,
    (entries) => (checked += entries),
  );
  const ended = assert.rejects(verification, { name: 'StoreError', message: /^PostgreSQL: / });
  // A connection that is lost between two ranges is replaced; this one is lost during its query.
  await terminating;
  await ended;
  assert.equal(checked < ENTRIES / 2, true, `${checked} were checked all the same`);
  // The server notices a closed connection after a moment.
  await until(
    async () => (await pids()).every((pid) => before.includes(pid)),
    120_000,
    () => 'a thread’s connection stayed open',
  );
});
