/** Edits of the database behind the service's back: each row that answers to the log, in each way. */
import assert from 'node:assert/strict';
import type { Client } from '../kit/client.ts';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import type { TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import type { TestClock } from '../kit/test-clock.ts';

const OF_AGENTS = ['agent', 'policy', 'credential', 'targets', 'session'] as const;
export const KINDS = [...OF_AGENTS, 'operator', 'operator session', 'approval'] as const;
export type Kind = (typeof KINDS)[number];
export const ATTACKS = ['inserted again', 'set back', 'changed', 'taken away'] as const;
export type Attack = (typeof ATTACKS)[number];

interface Target {
  readonly tables: readonly string[];
  readonly where: string;
  readonly subject: (dataDir: string) => Promise<string>;
  /** Removes and changes the row through the interface. */
  readonly remove: (service: TestService, token: string) => Promise<{ status: number }>;
  readonly change: ((service: TestService, token: string, clock?: TestClock) => Promise<{ status: number }>) | null;
  /** A change outside. */
  readonly alter: string;
  /** What a client gets when the row does not count. */
  readonly denied: number;
}

const MINUTE_MS = 60_000;
/** In SQL: the id of the operator `ann`. */
const ANN = "(SELECT id FROM operators WHERE name = 'operator:ann')";
/** Of no approval. */
const NO_ID = '01ffffff-0000-7000-8000-000000000000';
const CREDENTIAL_TABLES = STORE === 'sqlite' ? ['credentials'] : ['credentials', 'credential_versions'];

export const TARGETS: Readonly<Record<Kind, Target>> = {
  agent: {
    tables: ['agents'],
    where: "name = 'bot'",
    subject: async () => 'agent:bot',
    remove: ({ admin }) => admin.delete('/api/v1/agents/bot'),
    change: ({ admin }) => admin.post('/api/v1/panic', { agent: 'bot' }),
    alter: "UPDATE agents SET description = 'x' WHERE name = 'bot'",
    denied: 401,
  },
  policy: {
    tables: ['policies'],
    where: "name = 'bot-0'",
    subject: async () => 'policy:bot-0',
    remove: ({ admin }) => admin.delete('/api/v1/policies/bot-0'),
    change: ({ admin }) =>
      admin.put('/api/v1/policies/bot-0', { principal: 'agent:bot', resources: ['other/*'], actions: ['retrieve'] }),
    alter: "UPDATE policies SET max_ttl_seconds = 31536000 WHERE name = 'bot-0'",
    denied: 403,
  },
  credential: {
    tables: CREDENTIAL_TABLES,
    where: '1 = 1',
    subject: async () => 'credential:prod/key',
    remove: ({ admin }) => admin.delete('/api/v1/credentials/prod/key'),
    change: ({ admin }) => admin.post('/api/v1/credentials', { path: 'prod/key', value: 'rotated' }),
    alter: "UPDATE credentials SET description = 'x'",
    denied: 500,
  },
  targets: {
    tables: ['usages'],
    where: '1 = 1',
    subject: async () => 'targets:prod/key',
    remove: ({ admin }) => admin.delete('/api/v1/targets/prod/key'),
    change: ({ admin }) => admin.put('/api/v1/targets/prod/key', { service: 'anthropic' }),
    alter: 'UPDATE usages SET updated_at = updated_at + 1',
    denied: 404,
  },
  session: {
    tables: ['sessions'],
    where: '1 = 1',
    async subject(dataDir) {
      const rows = await selectRows(dataDir, "SELECT subject FROM audit_entries WHERE subject LIKE 'session:%'");
      return String(rows[0]?.['subject']);
    },
    remove: (service, token) => service.as(token).delete('/auth/session'),
    change: null,
    alter: 'UPDATE sessions SET expires_at = expires_at + 1',
    denied: 401,
  },
  operator: {
    tables: ['operators'],
    where: "name = 'operator:ann'",
    subject: async () => 'operator:ann',
    remove: ({ admin }) => admin.delete('/api/v1/operators/ann'),
    change: ({ admin }) => admin.post('/api/v1/operators/ann/rotate', { public_key: newOperatorKey().publicKey }),
    alter: `UPDATE operators SET roles = '["admin"]' WHERE name = 'operator:ann'`,
    denied: 401,
  },
  'operator session': {
    tables: ['sessions'],
    where: `agent_id = ${ANN}`,
    async subject(dataDir) {
      const ofOperator = "subject LIKE 'session:%' AND agent_name = 'operator:ann'";
      const rows = await selectRows(dataDir, `SELECT subject FROM audit_entries WHERE ${ofOperator}`);
      return String(rows[0]?.['subject']);
    },
    remove: (service, token) => service.as(token).delete('/auth/session'),
    async change(service, token, clock) {
      // A session is renewed once a minute at most.
      assert.ok(clock);
      await clock.move(MINUTE_MS);
      return service.as(token).post('/auth/session/renew');
    },
    alter: `UPDATE sessions SET ends_at = ends_at + 1 WHERE agent_id = ${ANN}`,
    denied: 401,
  },
  approval: {
    tables: ['approvals'],
    where: '1 = 1',
    async subject(dataDir) {
      const rows = await selectRows(dataDir, "SELECT subject FROM audit_entries WHERE subject LIKE 'approval:%'");
      return String(rows[0]?.['subject']);
    },
    remove: async ({ admin }) => admin.delete(await approvalOf(admin)),
    change: (service, token) => service.as(token).get('/api/v1/credentials/asked/key'),
    alter: 'UPDATE approvals SET uses_left = 2',
    denied: 404,
  },
};

/** The address of the only approval, which is in the list also if it does not answer to the log. */
async function approvalOf({ get }: Client): Promise<string> {
  const { data } = (await get('/api/v1/approvals')).body;
  return `/api/v1/approvals/${data[0]?.approval_id ?? NO_ID}`;
}

/** Prepares the attack through the interface. Returns the edit of the database, which must have no effect. */
export async function attack(
  kind: Kind,
  how: Attack,
  service: TestService,
  token: string,
  clock?: TestClock,
): Promise<() => Promise<void>> {
  const { tables, where, remove, change, alter } = TARGETS[kind];
  const { dataDir } = service;
  const of = (table: string): string => (table === tables[0] ? where : '1 = 1');
  const keep = tables.map((table) => `CREATE TABLE kept_${table} AS SELECT * FROM ${table} WHERE ${of(table)}`);
  const clear = tables.map((table) => `DELETE FROM ${table} WHERE ${of(table)}`);
  const putBack = tables.map((table) => `INSERT INTO ${table} SELECT * FROM kept_${table}`);
  if (how === 'changed') return () => executeSql(dataDir, alter);
  if (how === 'taken away') return () => executeSql(dataDir, clear.join(';'));
  await executeSql(dataDir, keep.join(';'));
  const { status } = await (how === 'set back' && change !== null
    ? change(service, token, clock)
    : remove(service, token));
  assert.ok(status < 300, `${kind} ${how}: ${status}`);
  const drop = tables.map((table) => `DROP TABLE kept_${table}`);
  return () => executeSql(dataDir, [...clear, ...putBack, ...drop].join(';'));
}

/** The status of what the row of the kind allows the session. */
export async function probe(kind: Kind, service: TestService, token: string): Promise<number> {
  const caller = service.as(token);
  if (kind === 'targets') return (await service.admin.get('/api/v1/targets/prod/key')).status;
  if (kind === 'approval') return (await caller.get(await approvalOf(caller))).status;
  return (await caller.get('/api/v1/credentials/prod/key')).status;
}

export async function prepare(service: TestService): Promise<string> {
  const { admin } = service;
  await admin.post('/api/v1/credentials', { path: 'prod/key', value: 'one' });
  assert.equal((await admin.put('/api/v1/targets/prod/key', { service: 'openai' })).status, 200);
  const { token } = await service.agent('bot', { 'prod/*': ['retrieve', 'list'] });
  for (const kind of OF_AGENTS) assert.equal(await probe(kind, service, token), 200, kind);
  return token;
}

/** Returns the token whose requests the row of the kind allows: that of an agent, or of the operator `ann`. */
export async function prepareFor(kind: Kind, service: TestService): Promise<string> {
  const token = await prepare(service);
  if (kind === 'approval') await approve(service, token);
  if (kind !== 'operator' && kind !== 'operator session') return token;
  await addOperator(service, 'ben', ['viewer']);
  const operator = await addOperator(service, 'ann', ['editor'], { 'prod/*': ['retrieve'] });
  assert.equal(await probe(kind, service, operator.token), 200, kind);
  return operator.token;
}

/** An operator approves a retrieval that the agent asks for. */
async function approve(service: TestService, token: string): Promise<void> {
  const ann = await addOperator(service, 'ann', ['approver']);
  await service.admin.post('/api/v1/credentials', { path: 'asked/key', value: 'two' });
  await demandApproval(service, 'bot', ['asked/*']);
  const { approval_id, nonce, abandon } = await askToRetrieve(service, token, 'asked/key');
  await abandon();
  assert.equal((await ann.post(`/api/v1/approvals/${approval_id}/approve`, { nonce })).status, 200);
}

export const PROBLEM: Readonly<Record<Attack, string>> = {
  'inserted again': 'not as recorded',
  'set back': 'not as recorded',
  changed: 'altered',
  'taken away': 'missing',
};

/** The recorded states in the order of the log. */
export async function readRecorded(dataDir: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows = await selectRows(
    dataDir,
    'SELECT subject, state FROM audit_entries WHERE subject IS NOT NULL ORDER BY seq',
  );
  return rows.map((row) => ({ ...row }));
}
