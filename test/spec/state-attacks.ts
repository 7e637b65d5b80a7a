/** Edits of the database behind the server's back: rows of each kind that the audit log records, in each way. */
import assert from 'node:assert/strict';
import type { Client } from '../kit/client.ts';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import type { TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import type { TestClock } from '../kit/test-clock.ts';

export const KINDS = [
  ...(['agent', 'policy', 'credential', 'targets', 'session'] as const),
  ...(['operator', 'operator-session', 'approval'] as const),
] as const;
export type Kind = (typeof KINDS)[number];
export const ATTACKS = ['inserted again', 'rolled back', 'changed', 'taken away'] as const;
export type Attack = (typeof ATTACKS)[number];

interface Target {
  /** Tables with the rows of the kind; a row is deleted from the last one first. */
  readonly tables: Readonly<Record<string, string>>;
  /** The subject in the audit log, or the pattern and the principal that find it there. */
  readonly subject: string | { readonly like: string; readonly principal: string };
  /** Removes and changes the row through the HTTP API. */
  readonly remove: (service: TestService, token: string) => Promise<{ status: number }>;
  readonly change: ((service: TestService, token: string, clock?: TestClock) => Promise<{ status: number }>) | null;
  /** A change of a column in the database. */
  readonly alter: string;
  /** The status of a request that needs the row when the row does not count. */
  readonly denied: number;
}

const MINUTE_MS = 60_000;
/** An id that no approval has. */
const NO_ID = '01ffffff-0000-7000-8000-000000000000';
/** Each kind has a separate agent or operator of this name, with a policy for the credential below. */
const nameOf = (kind: Kind): string => `bot-${kind}`;
const pathOf = (kind: Kind): string => `${kind}/key`;
const idOf = (table: string, name: string): string => `(SELECT id FROM ${table} WHERE name = '${name}')`;
const policyOf = (kind: Kind): string => `/api/v1/policies/${nameOf(kind)}-0`;
const OF_CREDENTIAL = `path = '${pathOf('credential')}'`;

export const TARGETS: Readonly<Record<Kind, Target>> = {
  agent: {
    tables: { agents: `name = '${nameOf('agent')}'` },
    subject: `agent:${nameOf('agent')}`,
    remove: ({ admin }) => admin.delete(`/api/v1/agents/${nameOf('agent')}`),
    change: ({ admin }) => admin.post('/api/v1/panic', { agent: nameOf('agent') }),
    alter: "description = 'x'",
    denied: 401,
  },
  policy: {
    tables: { policies: `name = '${nameOf('policy')}-0'` },
    subject: `policy:${nameOf('policy')}-0`,
    remove: ({ admin }) => admin.delete(policyOf('policy')),
    change: ({ admin }) =>
      admin.put(policyOf('policy'), {
        principal: `agent:${nameOf('policy')}`,
        resources: ['other/*'],
        actions: ['retrieve'],
      }),
    alter: 'max_ttl_seconds = 31536000',
    denied: 403,
  },
  credential: {
    tables: {
      credentials: OF_CREDENTIAL,
      ...(STORE === 'sqlite'
        ? {}
        : { credential_versions: `credential_id IN (SELECT id FROM credentials WHERE ${OF_CREDENTIAL})` }),
    },
    subject: `credential:${pathOf('credential')}`,
    remove: ({ admin }) => admin.delete(`/api/v1/credentials/${pathOf('credential')}`),
    change: ({ admin }) => admin.post('/api/v1/credentials', { path: pathOf('credential'), value: 'rotated' }),
    alter: "description = 'x'",
    denied: 500,
  },
  targets: {
    tables: { credential_targets: `path = '${pathOf('targets')}'` },
    subject: `targets:${pathOf('targets')}`,
    remove: ({ admin }) => admin.delete(`/api/v1/targets/${pathOf('targets')}`),
    change: ({ admin }) => admin.put(`/api/v1/targets/${pathOf('targets')}`, { service: 'anthropic' }),
    alter: 'updated_at = updated_at + 1',
    denied: 404,
  },
  session: {
    tables: { sessions: `agent_id = ${idOf('agents', nameOf('session'))}` },
    subject: { like: 'session:%', principal: nameOf('session') },
    remove: (service, token) => service.as(token).delete('/auth/session'),
    change: null,
    alter: 'expires_at = expires_at + 1',
    denied: 401,
  },
  operator: {
    tables: { operators: `name = 'operator:${nameOf('operator')}'` },
    subject: `operator:${nameOf('operator')}`,
    remove: ({ admin }) => admin.delete(`/api/v1/operators/${nameOf('operator')}`),
    change: ({ admin }) =>
      admin.post(`/api/v1/operators/${nameOf('operator')}/rotate`, { public_key: newOperatorKey().publicKey }),
    alter: `roles = '["admin"]'`,
    denied: 401,
  },
  'operator-session': {
    tables: { sessions: `agent_id = ${idOf('operators', `operator:${nameOf('operator-session')}`)}` },
    subject: { like: 'session:%', principal: `operator:${nameOf('operator-session')}` },
    remove: (service, token) => service.as(token).delete('/auth/session'),
    async change(service, token, clock) {
      // A session is renewed once a minute at most.
      assert.ok(clock);
      await clock.move(MINUTE_MS);
      return service.as(token).post('/auth/session/renew');
    },
    alter: 'ends_at = ends_at + 1',
    denied: 401,
  },
  approval: {
    tables: { approvals: '1 = 1' },
    subject: { like: 'approval:%', principal: nameOf('approval') },
    remove: async ({ admin }) => admin.delete(await approvalOf(admin)),
    change: (service, token) => service.as(token).get('/api/v1/credentials/asked/key'),
    alter: 'uses_left = 2',
    denied: 404,
  },
};

/** The URL path of the only approval, which is in the list even if it does not match the audit log. */
async function approvalOf({ get }: Client): Promise<string> {
  const { data } = (await get('/api/v1/approvals')).body;
  return `/api/v1/approvals/${data[0]?.approval_id ?? NO_ID}`;
}

/** The subject of the row in the audit log. */
export async function subjectOf(kind: Kind, dataDir: string): Promise<string> {
  const { subject } = TARGETS[kind];
  if (typeof subject === 'string') return subject;
  const { like, principal } = subject;
  const rows = await selectRows(
    dataDir,
    `SELECT subject FROM audit_entries WHERE subject LIKE '${like}' AND agent_name = '${principal}' ORDER BY seq`,
  );
  return String(rows[0]?.['subject']);
}

/** Prepares the attack through the HTTP API. Returns the edit of the database, which must have no effect. */
export async function attack(
  kind: Kind,
  how: Attack,
  service: TestService,
  token: string,
  clock?: TestClock,
): Promise<() => Promise<void>> {
  const { tables, remove, change, alter } = TARGETS[kind];
  const { dataDir } = service;
  const rows = Object.entries(tables).map(([table, where]) => ({
    table,
    where,
    copy: `kept_${kind.replace('-', '_')}_${table}`,
  }));
  const [first] = rows;
  assert.ok(first);
  const clear = rows.toReversed().map(({ table, where }) => `DELETE FROM ${table} WHERE ${where}`);
  if (how === 'changed') return () => executeSql(dataDir, `UPDATE ${first.table} SET ${alter} WHERE ${first.where}`);
  if (how === 'taken away') return () => executeSql(dataDir, clear.join(';'));
  const keep = rows.map(({ table, where, copy }) => `CREATE TABLE ${copy} AS SELECT * FROM ${table} WHERE ${where}`);
  const putBack = rows.map(({ table, copy }) => `INSERT INTO ${table} SELECT * FROM ${copy}; DROP TABLE ${copy}`);
  await executeSql(dataDir, keep.join(';'));
  const { status } = await (how === 'rolled back' && change !== null
    ? change(service, token, clock)
    : remove(service, token));
  assert.ok(status < 300, `${kind} ${how}: ${status}`);
  return () => executeSql(dataDir, [...clear, ...putBack].join(';'));
}

/** The status of a request that needs the row of the kind. */
export async function probe(kind: Kind, service: TestService, token: string): Promise<number> {
  const caller = service.as(token);
  if (kind === 'targets') return (await service.admin.get(`/api/v1/targets/${pathOf(kind)}`)).status;
  if (kind === 'approval') return (await caller.get(await approvalOf(caller))).status;
  return (await caller.get(`/api/v1/credentials/${pathOf(kind)}`)).status;
}

/** Makes the rows of the kind. Returns the token of its agent or operator. */
export async function prepare(kind: Kind, service: TestService): Promise<string> {
  const { admin } = service;
  await admin.post('/api/v1/credentials', { path: pathOf(kind), value: 'one' });
  const put = await admin.put(`/api/v1/targets/${pathOf(kind)}`, { service: 'openai' });
  assert.equal(put.status, 200, put.text);
  const grants = { [`${kind}/*`]: ['retrieve', 'list'] };
  const isOperator = kind === 'operator' || kind === 'operator-session';
  const { token } = isOperator
    ? await addOperator(service, nameOf(kind), ['editor'], grants)
    : await service.agent(nameOf(kind), grants);
  if (kind === 'approval') await approve(service, token);
  assert.equal(await probe(kind, service, token), 200, kind);
  return token;
}

/** An operator approves a retrieval that the agent asks for. */
async function approve(service: TestService, token: string): Promise<void> {
  const approver = await addOperator(service, 'ann', ['approver']);
  await service.admin.post('/api/v1/credentials', { path: 'asked/key', value: 'two' });
  await demandApproval(service, nameOf('approval'), ['asked/*']);
  const { approval_id, nonce, abandon } = await askToRetrieve(service, token, 'asked/key');
  await abandon();
  assert.equal((await approver.post(`/api/v1/approvals/${approval_id}/approve`, { nonce })).status, 200);
}

export const PROBLEM: Readonly<Record<Attack, string>> = {
  'inserted again': 'not as recorded',
  'rolled back': 'not as recorded',
  changed: 'altered',
  'taken away': 'missing',
};
