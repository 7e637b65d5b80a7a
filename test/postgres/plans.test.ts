// Every query and deletion finds its rows by an index, however often it ran: PostgreSQL counts the rows that it reads.
// WHY counted: PostgreSQL may change the plan of a statement after several executions, so EXPLAIN may show a plan that
// is not used.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { ActorName, AgentId, CredentialId, LeaseId, TokenHash } from '../../src/core/names.ts';
import { ALL_PATHS } from '../../src/core/pattern.ts';
import {
  type ApprovalQuery,
  countApprovals,
  findAnswered,
  findApproval,
  findTimedOut,
  listApprovals,
  NEWEST_APPROVAL,
} from '../../src/store/approval-lists.ts';
import { countEntries, findSeqAt, readEntries, readHead } from '../../src/store/audit-log.ts';
import { FIRST_CREDENTIAL, listCredentials } from '../../src/store/credential-lists.ts';
import { countLeases, countRevokedBy, listLeases, NEWEST_LEASE } from '../../src/store/lease-lists.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { POSTGRES_DIALECT } from '../../src/store/postgres/dialect.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { isDeregistered, readSession } from '../../src/store/vault-metadata.ts';
import type { ApprovalId } from '../../src/vault/approvals/approval.ts';
import { ENDED_LEASE_RETENTION_MS } from '../../src/vault/leases/lease.ts';
import { asChallenge, asPath, headAt, KEY_CHECK, KEYS, T0 } from '../contract/rows.ts';
import { newDatabase } from '../kit/database.ts';
import { querySql } from '../kit/postmaster.ts';
import { until } from '../kit/processes.ts';

/** Rows of leases, credentials, entries and other tables: more than a step reads, and far more than any query needs. */
const ROWS = 40_000;
/** After five executions PostgreSQL may choose a generic plan, so each statement runs more often than that. */
const TIMES = 12;
/** The number of rows that a step may read. */
const STEP_ROWS = 5000;
/** Tables with one row, or tables that are read whole when a node starts. */
const SMALL = [
  'vault',
  'audit_head',
  'keyset',
  'access_count_progress',
  'exposure_progress',
  'migrations',
  'agents',
  'policies',
  'control_removals',
];

const many = (table: string, columns: string, values: string): string =>
  `INSERT INTO leasehold.${table} (${columns}) SELECT ${values} FROM generate_series(1, ${ROWS}) AS i;`;

const FILL = [
  many(
    'credentials',
    'id, path, type, description, created_at, updated_at, version, mac',
    `'c' || i, 'p/' || i, 't', '', 1, 1, 1, ''`,
  ),
  many('credential_versions', 'credential_id, version, type, created_at, sealed', `'c' || i, 1, 't', 1, '\\x00'`),
  many('access_counts', 'credential_id, count', `'c' || i, 0`),
  many('sessions', 'token_hash, agent_id, issued_at, expires_at, mac', `'s' || i, 'a' || i % 100, 1, ${T0} + i, ''`),
  many('spent_challenges', 'id, expires_at', `'x' || i, ${T0} + i`),
  many(
    'idempotency_records',
    'id, agent_id, request_mac, reply, expires_at, mac',
    `'k' || i, 'a', '', '', ${T0} + i, ''`,
  ),
  many(
    'approvals',
    'id, nonce, agent_id, agent_name, token_hash, action, path, key, basis, terms, status, requested_at, answer_by, ' +
      'approvers, expires_at, mac',
    `'q' || i, '', 'a' || i % 100, 'ci-' || i % 10, '', 'use', 'p', 'k' || i, '', '{}',
     CASE WHEN i % 1000 = 0 THEN 'pending' WHEN i % 4 = 1 THEN 'timed_out' WHEN i % 4 = 2 THEN 'approved'
     ELSE 'denied' END, 1, ${T0} + i, '[]', ${T0} + i, ''`,
  ),
  many('approval_requests', 'id, expires_at, sealed', `'q' || i, ${T0} + i, '\\x00'`),
  many(
    'bulk_revocations',
    'seq, agent_id, credential_id, kind, revoked_at',
    `${ROWS} + i, 'b' || i % 100, '', '', ${T0}`,
  ),
  many(
    'leases',
    'seq, id, kind, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at',
    `i, 'l' || i, 'retrieve', 'a' || i % 100, 'c' || i % 100, CASE WHEN i % 10000 = 0 THEN 'rare' ELSE 'ci-' || i % 100 END,
     'p/' || i % 100, 1, 'p', ${T0}, ${T0} + i`,
  ),
  many(
    'audit_entries',
    'seq, id, timestamp, event_type, agent_name, resource, action, result, hmac',
    `i, 'e' || i, to_char(i, 'FM0000000000'), 'credential.list', 'ci', 'r', 'list', 'allowed', ''`,
  ),
  `UPDATE leasehold.access_count_progress SET through_seq = ${ROWS - 100}; ANALYZE;`,
].join('\n');

/** The rows that were read of each table, and the number of its sequential scans. */
interface Reading {
  readonly table: string;
  readonly scans: number;
  readonly rows: number;
}

const url = await newDatabase({ after });
const made = await PostgresStore.open(parseAddress(url));
await made.initialise(KEY_CHECK, headAt(0), T0, KEYS);
await made.close();
await querySql(url, FILL);

async function readSoFar(): Promise<Reading[]> {
  const rows = await querySql(
    url,
    `SELECT t.relname AS table, t.seq_scan AS scans, coalesce(t.idx_tup_fetch, 0)
       + coalesce((SELECT sum(i.idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid), 0) AS rows
     FROM pg_stat_user_tables t WHERE t.schemaname = 'leasehold' ORDER BY 1`,
  );
  return rows.map((row) => ({ table: String(row['table']), scans: Number(row['scans']), rows: Number(row['rows']) }));
}

/** Counts are written when a connection has ended. */
async function untilNobodyElseIsThere(): Promise<void> {
  const others = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
  await until(
    async () => (await querySql(url, others)).length === 0,
    120_000,
    () => 'a connection stays open',
  );
}

/** The rows that a separate store reads during the work, for each table that is not small. */
async function readBy(work: (store: PostgresStore) => Promise<unknown>): Promise<Reading[]> {
  await untilNobodyElseIsThere();
  const before = new Map((await readSoFar()).map((reading) => [reading.table, reading]));
  const store = await PostgresStore.open(parseAddress(url));
  for (let time = 0; time < TIMES; time++) await work(store);
  await store.close();
  await untilNobodyElseIsThere();
  const after = (await readSoFar()).filter(({ table }) => !SMALL.includes(table));
  return after.map(({ table, scans, rows }) => {
    const { scans: earlier = 0, rows: known = 0 } = before.get(table) ?? {};
    return { table, scans: scans - earlier, rows: rows - known };
  });
}

const query = { agentId: null, agentName: null, path: null, status: null, now: T0 };
const everyApproval: ApprovalQuery = { agentId: null, agentName: null, status: null, now: T0 };
const [RARE, CI] = ['rare', 'ci-1'] as [ActorName, ActorName];

/** Queries and the number of rows of a table that each may read, once for the index and once for the row. */
const LOOKS: readonly (readonly [what: string, atMost: number, look: (store: PostgresStore) => Promise<unknown>])[] = [
  [
    'the rows that a transaction loads',
    40,
    async (store) => {
      const [path, other] = [asPath('p/7'), asPath('p/8')];
      const lease = 'l9' as LeaseId;
      const session = 's5' as TokenHash;
      const keys = [
        { credential: path, version: 'newest' as const, session },
        { credential: other, version: 1, history: true as const },
        { lease, challenge: asChallenge(1) },
      ];
      const turn = await store.begin(keys);
      await turn.rollback();
    },
  ],
  [
    'the leases of a name that has few',
    40,
    (store) => store.run(listLeases(store.dialect, { ...query, agentName: RARE }, NEWEST_LEASE, 10)),
  ],
  [
    'how many leases a name has that has few',
    40,
    (store) => store.run(countLeases(store.dialect, { ...query, agentName: RARE }, NEWEST_LEASE, 10)),
  ],
  [
    'the leases of a name',
    1000,
    (store) => store.run(listLeases(store.dialect, { ...query, agentName: CI }, NEWEST_LEASE, 10)),
  ],
  ['the newest leases', 3 * STEP_ROWS, (store) => store.run(listLeases(store.dialect, query, NEWEST_LEASE, 10))],
  [
    'the leases that a bulk revocation ended',
    4000,
    (store) => {
      const mark = {
        seq: ROWS,
        kind: null,
        revokedAt: T0,
        agentId: 'a1' as AgentId,
        credentialId: 'c1' as CredentialId,
      };
      return store.run(countRevokedBy(store.dialect, { revocation: mark, agentName: CI }, NEWEST_LEASE));
    },
  ],
  [
    'a page of credentials',
    3 * STEP_ROWS,
    (store) => store.run(listCredentials(store.dialect, { ranges: ALL_PATHS, type: null }, FIRST_CREDENTIAL, 10)),
  ],
  ['how often one was retrieved', 250, (store) => store.readAccessCount('c1' as CredentialId)],
  ['entries of the log', 40, (store) => store.run(readEntries(100, 110, 10))],
  ['the entry of a time', 120, (store) => store.run(findSeqAt('0000020000'))],
  ['a session', 4, (store) => store.run(readSession('s5' as TokenHash))],
  ['whether an agent was deregistered', 1000, (store) => store.run(isDeregistered('b5' as AgentId))],
  ['an approval', 4, (store) => store.run(findApproval('q5' as ApprovalId))],
  ['approvals without an answer in time', 120, (store) => store.run(findTimedOut(T0, 64))],
  [
    'approvals that timed out',
    120,
    (store) => store.run(listApprovals(store.dialect, { ...everyApproval, status: 'timed_out' }, NEWEST_APPROVAL, 10)),
  ],
  [
    'how many approvals timed out',
    3000,
    (store) =>
      store.run(countApprovals(store.dialect, { ...everyApproval, status: 'timed_out' }, NEWEST_APPROVAL, 1000)),
  ],
  [
    'how many approvals of an agent wait',
    40,
    (store) =>
      store.run(
        countApprovals(
          store.dialect,
          { ...everyApproval, agentId: 'a1' as AgentId, status: 'pending' },
          NEWEST_APPROVAL,
          200,
        ),
      ),
  ],
  [
    'the newest approvals of a name',
    300,
    (store) => store.run(listApprovals(store.dialect, { ...everyApproval, agentName: CI }, NEWEST_APPROVAL, 10)),
  ],
  [
    'the approvals of a name that has none',
    40,
    (store) => store.run(listApprovals(store.dialect, { ...everyApproval, agentName: RARE }, NEWEST_APPROVAL, 10)),
  ],
  [
    'which approvals were answered',
    40,
    (store) => store.run(findAnswered(store.dialect, ['q1', 'q2', 'q3', 'none'] as readonly string[] as ApprovalId[])),
  ],
  ['the end of the log', 10, (store) => store.run(readHead())],
  ['what has ended long ago, where nothing has', 500, (store) => store.sweep(T0 - ENDED_LEASE_RETENTION_MS, 100)],
];

const MAY_READ_NOTHING = new Set(['the end of the log', 'the approvals of a name that has none']);

for (const [what, atMost, look] of LOOKS) {
  test(`no statement scans a whole table: ${what}`, async () => {
    const readings = await readBy(look);
    assert.ok(readings.some(({ rows }) => rows > 0) || MAY_READ_NOTHING.has(what), 'nothing was read at all');
    for (const { table, scans, rows } of readings) {
      assert.equal(scans, 0, `${table} was scanned ${scans} times`);
      assert.ok(rows <= atMost * TIMES, `${rows / TIMES} rows of ${table} were read each time`);
    }
  });
}

test('the answered of any number of approvals have one statement', () => {
  const textOf = (count: number) => {
    const ids = Array.from({ length: count }, (_, number) => `id-${number}` as ApprovalId);
    const { value } = findAnswered(POSTGRES_DIALECT, ids).next();
    return Array.isArray(value) ? assert.fail('no statement') : value.parts;
  };
  for (const count of [0, 2, 1000]) assert.deepEqual(textOf(count), textOf(1));
});

test('a scan of a whole table is detected', async () => {
  const query = { agentName: null, resource: null, action: null, eventType: null, result: null };
  const range = { from: 1, to: ROWS, order: 'asc' } as const;
  const readings = await readBy((store) => store.run(countEntries(store.dialect, query, range, ROWS)));
  assert.ok(readings.some(({ table, rows }) => table === 'audit_entries' && rows >= STEP_ROWS * TIMES));
});
