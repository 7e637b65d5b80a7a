// No look and no removal goes through a table: each finds its rows by a key or an index, as SQLite itself tells.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { ALL_PATHS } from '../../src/core/pattern.ts';
import { FIRST_CREDENTIAL, NEWEST_LEASE } from '../../src/store/queries.ts';
import { AccessCounts } from '../../src/store/sqlite/access-counts.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { LeaseLists } from '../../src/store/sqlite/lease-lists.ts';
import { Lists } from '../../src/store/sqlite/lists.ts';
import { Log } from '../../src/store/sqlite/log.ts';
import { uncountedRetrievals } from '../../src/store/sqlite/recover-counts.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { Sweeper } from '../../src/store/sqlite/sweeper.ts';
import { aLease, commit, headAt, KEY_CHECK, leased, T0 } from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';

/**
 * A database that keeps what was prepared. It has a lease of each status: some statements are made when something is found, and
 * not before.
 */
async function newRecording(t: TestContext): Promise<{ database: DatabaseSync; prepared: Set<string> }> {
  const file = join(temporaryDirectory(t), 'vault.db');
  const store = new SqliteStore(file);
  await store.initialise(KEY_CHECK, headAt(0), T0);
  const [active, expired, revoked] = [aLease(1), aLease(2, { expiresAt: T0 }), aLease(3)];
  const changes = [active, expired, revoked].map(leased);
  await commit(store, { changes: [...changes, { kind: 'revokeLease', id: revoked.id, revokedAt: T0 }] });
  await store.close();
  const database = openDatabase(file);
  t.after(() => database.close());
  const prepared = new Set<string>();
  const prepare = database.prepare.bind(database);
  database.prepare = (sql) => {
    prepared.add(sql);
    return prepare(sql);
  };
  return { database, prepared };
}

/** A scan of what a subquery gave, which is bounded there, or of a table with one row, is none. */
const HARMLESS = /^SCAN (\(subquery|vault|audit_head|CONSTANT)/;
/** The last row of a table. */
const LAST_ROW = /ORDER BY seq DESC LIMIT 1$/;

function scansOf(database: DatabaseSync, sql: string): string[] {
  if (LAST_ROW.test(sql)) return [];
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  const details = plan.map(({ detail }) => String(detail));
  return details.filter((detail) => /SCAN|TEMP B-TREE/.test(detail) && !HARMLESS.test(detail));
}

const query = { agentId: null, agentName: null, path: null, status: null, now: T0 };
const { agentId, agentName, path, credentialId } = aLease(1);

const LOOKS: readonly (readonly [what: string, look: (database: DatabaseSync) => void])[] = [
  [
    'the list of credentials',
    (database) => {
      const lists = new Lists(database, new AccessCounts(database));
      lists.credentials({ ranges: ALL_PATHS, type: null }, FIRST_CREDENTIAL, 10);
      lists.countCredentials({ ranges: ALL_PATHS, type: null }, FIRST_CREDENTIAL, 10);
    },
  ],
  [
    'the list of leases, however it is filtered',
    (database) => {
      const lists = new LeaseLists(database);
      for (const status of [null, 'active', 'expired', 'revoked'] as const) {
        for (const filter of [{}, { agentName }, { agentName, agentId }, { path }, { agentName, agentId, path }]) {
          lists.leases({ ...query, ...filter, status }, NEWEST_LEASE, 10);
          for (const atMost of [1, 10]) lists.countLeases({ ...query, ...filter, status }, NEWEST_LEASE, atMost);
        }
      }
    },
  ],
  [
    'the leases that a mark ended',
    (database) => {
      const lists = new LeaseLists(database);
      const mark = { seq: 9, revokedAt: T0 };
      lists.countRevokedBy({ mark: { ...mark, agentId, credentialId }, agentName }, 9);
      lists.countRevokedBy({ mark: { ...mark, agentId, credentialId: null }, agentName }, 9);
      lists.countRevokedBy({ mark: { ...mark, agentId: null, credentialId }, agentName: null }, 9);
    },
  ],
  ['sweeping', (database) => void new Sweeper(database).sweep(T0, 10)],
  [
    'the log',
    (database) => {
      const log = new Log(database);
      log.head();
      log.findSeqAt('2026');
      [...uncountedRetrievals(database, 0, 9)];
    },
  ],
];

for (const [what, look] of LOOKS) {
  test(`no statement goes through a whole table: ${what}`, async (t) => {
    const { database, prepared } = await newRecording(t);
    look(database);
    const statements = [...prepared].filter((sql) => !sql.startsWith('EXPLAIN'));
    assert.ok(statements.length > 2);
    for (const sql of statements) assert.deepEqual(scansOf(database, sql), [], sql);
  });
}

test('the look at plans sees a scan', async (t) => {
  const { database } = await newRecording(t);
  assert.equal(scansOf(database, 'SELECT * FROM effective_leases WHERE path = ?').length, 1);
  assert.equal(scansOf(database, 'DELETE FROM bulk_revocations WHERE revoked_at < 9').length, 1);
});
