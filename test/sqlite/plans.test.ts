// Every query and deletion finds its rows by a key or an index, according to SQLite's query plan.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import type { ActorName, AgentId } from '../../src/core/names.ts';
import { ALL_PATHS } from '../../src/core/pattern.ts';
import {
  type ApprovalQuery,
  countApprovals,
  findAnswered,
  findLiveApprovals,
  findTimedOut,
  listApprovals,
  NEWEST_APPROVAL,
} from '../../src/store/approval-lists.ts';
import { findSeqAt, readHead } from '../../src/store/audit-log.ts';
import { countCredentials, FIRST_CREDENTIAL, listCredentials } from '../../src/store/credential-lists.ts';
import { countLeases, countRevokedBy, listLeases, NEWEST_LEASE } from '../../src/store/lease-lists.ts';
import { AccessCounts } from '../../src/store/sqlite/access-counts.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { sqliteDialect } from '../../src/store/sqlite/dialect.ts';
import { Statements } from '../../src/store/sqlite/statements.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { Sweeper } from '../../src/store/sqlite/sweeper.ts';
import type { Procedure } from '../../src/store/statement.ts';
import { APPROVAL_STATUSES, type ApprovalId } from '../../src/vault/approvals/approval.ts';
import { aLease, commit, headAt, KEY_CHECK, KEYS, leased, T0 } from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';

/**
 * A database that records its prepared statements. It has a lease of each status, because some statements are prepared
 * only if a row is found.
 */
async function newRecording(t: TestContext): Promise<{ database: DatabaseSync; prepared: Set<string> }> {
  const file = join(temporaryDirectory(t), 'vault.db');
  const store = new SqliteStore(file);
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
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
const HARMLESS = /^SCAN (\(subquery|chunk|counted|json_each|oldest|one|head|last|vault|audit_head|CONSTANT)/;
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

const EVERY_APPROVAL: ApprovalQuery = { agentId: null, agentName: null, status: null, now: T0 };
const OF_AGENT: readonly (readonly [column: string, filter: Partial<ApprovalQuery>])[] = [
  ['agent_id', { agentId: 'agent-1' as AgentId }],
  ['agent_name', { agentName: 'ci-1' as ActorName }],
];

function readApprovals(database: DatabaseSync, filter: Partial<ApprovalQuery>): void {
  const every = { ...EVERY_APPROVAL, ...filter };
  const dialect = sqliteDialect(new AccessCounts(database));
  run(
    database,
    listApprovals(dialect, every, NEWEST_APPROVAL, 10),
    countApprovals(dialect, every, NEWEST_APPROVAL, 10),
  );
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
  [
    'the list of approvals, however it is filtered',
    (database) => {
      for (const status of [null, ...APPROVAL_STATUSES]) {
        for (const filter of [{}, ...OF_AGENT.map(([, each]) => each)]) readApprovals(database, { ...filter, status });
      }
    },
  ],
  [
    'the approvals that are settled or were answered',
    (database) => {
      const dialect = sqliteDialect(new AccessCounts(database));
      const ids = ['one', 'two'] as readonly string[] as ApprovalId[];
      run(database, findTimedOut(T0, 10), findLiveApprovals(dialect, T0, '', 10), findAnswered(dialect, ids));
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

for (const [column, filter] of OF_AGENT) {
  test(`approvals by ${column} are found by an index of it and the status, in the order of the list`, async (t) => {
    for (const status of [null, ...APPROVAL_STATUSES]) {
      const { database, prepared } = await newRecording(t);
      readApprovals(database, { ...filter, status });
      const statements = [...prepared].filter((text) => text.includes('approvals'));
      assert.equal(statements.length, 2);
      for (const sql of statements) {
        const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
        const searches = plan.map(({ detail }) => String(detail)).filter((detail) => detail.startsWith('SEARCH'));
        assert.notDeepEqual(searches, []);
        for (const search of searches)
          assert.match(search, new RegExp(`\\(${column}=\\? AND status=\\? AND id<\\?\\)$`));
      }
    }
  });
}

test('one statement finds the answered of any number of approvals', async (t) => {
  const { database, prepared } = await newRecording(t);
  const dialect = sqliteDialect(new AccessCounts(database));
  prepared.clear();
  const statements = new Statements(database);
  for (const count of [0, 1, 2, 3, 1000]) {
    const ids = Array.from({ length: count }, (_, number) => `id-${number}` as ApprovalId);
    statements.run(findAnswered(dialect, ids));
  }
  assert.equal(prepared.size, 1);
});

test('the check of query plans detects a scan', async (t) => {
  const { database } = await newRecording(t);
  assert.equal(scansOf(database, 'SELECT * FROM effective_leases WHERE path = ?').length, 1);
  assert.equal(scansOf(database, 'DELETE FROM bulk_revocations WHERE revoked_at < 9').length, 1);
});
