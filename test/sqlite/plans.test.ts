// Every query and deletion finds its rows by a key or an index, according to SQLite's query plan.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { ALL_PATHS } from '../../src/core/pattern.ts';
import { findSeqAt, readHead } from '../../src/store/audit-log.ts';
import { countCredentials, listCredentials } from '../../src/store/credential-lists.ts';
import { countLeases, countRevokedBy, listLeases } from '../../src/store/lease-lists.ts';
import { FIRST_CREDENTIAL, NEWEST_LEASE } from '../../src/store/queries.ts';
import { AccessCounts } from '../../src/store/sqlite/access-counts.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { sqliteDialect } from '../../src/store/sqlite/dialect.ts';
import { Statements } from '../../src/store/sqlite/statements.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { Sweeper } from '../../src/store/sqlite/sweeper.ts';
import type { Procedure } from '../../src/store/statement.ts';
import { aLease, commit, headAt, KEY_CHECK, leased, T0 } from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';

/**
 * A database that records its prepared statements. It has a lease of each status, because some statements are prepared
 * only if a row is found.
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

/** Scans of a subquery with bounded rows, or of a table with one row. */
const HARMLESS = /^SCAN (\(subquery|chunk|counted|oldest|one|head|last|vault|audit_head|CONSTANT)/;
/** The last row of a table. */
const LAST_ROW = /ORDER BY seq DESC LIMIT 1(\)|$)/;

function scansOf(database: DatabaseSync, sql: string): string[] {
  if (LAST_ROW.test(sql)) return [];
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  const details = plan.map(({ detail }) => String(detail));
  return details.filter((detail) => /SCAN|TEMP B-TREE/.test(detail) && !HARMLESS.test(detail));
}

const query = { agentId: null, agentName: null, path: null, status: null, now: T0 };
const { agentId, agentName, path, credentialId } = aLease(1);

/** Runs every procedure with statements that the recording sees. */
function run(database: DatabaseSync, ...procedures: readonly Procedure<unknown>[]): void {
  const statements = new Statements(database);
  for (const procedure of procedures) statements.run(procedure);
}

const LOOKS: readonly (readonly [what: string, look: (database: DatabaseSync) => void])[] = [
  [
    'the list of credentials',
    (database) => {
      const dialect = sqliteDialect(new AccessCounts(database));
      const all = { ranges: ALL_PATHS, type: null };
      run(
        database,
        listCredentials(dialect, all, FIRST_CREDENTIAL, 10),
        countCredentials(dialect, all, FIRST_CREDENTIAL, 10),
      );
    },
  ],
  [
    'the list of leases, however it is filtered',
    (database) => {
      const dialect = sqliteDialect(new AccessCounts(database));
      for (const status of [null, 'active', 'expired', 'revoked'] as const) {
        for (const filter of [{}, { agentName }, { agentName, agentId }, { path }, { agentName, agentId, path }]) {
          run(database, listLeases(dialect, { ...query, ...filter, status }, NEWEST_LEASE, 10));
          for (const atMost of [1, 10]) {
            run(database, countLeases(dialect, { ...query, ...filter, status }, NEWEST_LEASE, atMost));
          }
        }
      }
    },
  ],
  [
    'the leases that a bulk revocation ended',
    (database) => {
      const dialect = sqliteDialect(new AccessCounts(database));
      const mark = { seq: 9, kind: null, revokedAt: T0 };
      run(
        database,
        countRevokedBy(dialect, { revocation: { ...mark, agentId, credentialId }, agentName }, 9),
        countRevokedBy(dialect, { revocation: { ...mark, agentId, credentialId: null }, agentName }, 9),
        countRevokedBy(dialect, { revocation: { ...mark, agentId: null, credentialId }, agentName: null }, 9),
      );
    },
  ],
  ['sweeping', (database) => void new Sweeper(database).sweep(T0, 10)],
  [
    'the log',
    (database) => {
      run(database, readHead(), findSeqAt('2026'));
      new AccessCounts(database);
    },
  ],
];

for (const [what, look] of LOOKS) {
  test(`no statement scans a whole table: ${what}`, async (t) => {
    const { database, prepared } = await newRecording(t);
    look(database);
    const statements = [...prepared].filter((sql) => !sql.startsWith('EXPLAIN'));
    assert.ok(statements.length > 2);
    for (const sql of statements) assert.deepEqual(scansOf(database, sql), [], sql);
  });
}

test('the check of query plans detects a scan', async (t) => {
  const { database } = await newRecording(t);
  assert.equal(scansOf(database, 'SELECT * FROM effective_leases WHERE path = ?').length, 1);
  assert.equal(scansOf(database, 'DELETE FROM bulk_revocations WHERE revoked_at < 9').length, 1);
});
