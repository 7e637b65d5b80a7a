// Authorization: every route × every kind of caller, by the permission table and what the decision adds to it. Each
// response conforms to the OpenAPI document, including every key.
// SOURCE: docs/decisions.md, "Agents and sessions" and "The audit log".

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import {
  eventOf,
  lackOfPermission,
  PERMISSIONS,
  type Permission,
  type PermissionIdentity,
} from '../../src/core/permissions.ts';
import type { Route } from '../../src/http/route.ts';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import type { Role } from '../../src/vault/operators/operator.ts';
import { startUpstream } from '../broker/upstream.ts';
import { type Client, createClient, logIn, readAgentKey } from '../kit/client.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { addOperator, newOperatorKey, type TestOperator } from '../kit/operators.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { addWithPasskey, toLocalhost } from '../kit/sign-in.ts';
import { conformance, readDocument } from './document.ts';

const CREDENTIALS = '/api/v1/credentials';
const ALL = ['retrieve', 'use', 'list', 'store', 'delete'];

const upstream = await startUpstream({ after }, (_, response) => response.end('ok'));
const ORIGIN = `https://127.0.0.1:${upstream.port}`;

const service = await startTestService({ after });
const { admin, dataDir } = service;
const assertConforms = conformance(await readDocument(service));
// Where passkeys work.
const address = toLocalhost(service.address);
await service.agent('without');
const { token: tokenOfWith } = await service.agent('with', { 'matrix/*': ALL });
await service.agent('another', { 'other/*': ALL });

/** An operator of each role, which is its only one. */
const OPERATORS: ReadonlyMap<string, TestOperator & { readonly role: Role }> = new Map(
  await Promise.all(
    (
      [
        ['viewer', 'viewer'],
        ['approver', 'approver'],
        ['editor', 'editor'],
        // The name admin is reserved.
        ['boss', 'admin'],
      ] as const
    ).map(async ([name, role]) => {
      const grants = role === 'editor' ? { 'matrix/*': ALL } : {};
      return [`operator:${name}`, { role, ...(await addOperator(service, name, [role], grants)) }] as const;
    }),
  ),
);

await demandApproval(service, 'with', ['asked/*'], { timeout: 86_400 });

const AGENTS = ['without', 'with', 'another'] as const;
const enter = async (name: string) => createClient(address, await logIn(address, name, readAgentKey(dataDir, name)));
const CALLERS: Readonly<Record<string, () => Promise<Client>>> = {
  nobody: async () => createClient(address, null),
  without: () => enter('without'),
  with: () => enter('with'),
  another: () => enter('another'),
  admin: async () => createClient(address, service.adminToken),
  ...Object.fromEntries(
    Array.from(OPERATORS, ([name, { enter }]) => [name, async () => createClient(address, await enter())]),
  ),
};

const clients = new Map<string, Promise<Client>>();
/** The caller with its session, which stays for the calls of a route. */
function clientOf(caller: string): Promise<Client> {
  const known = clients.get(caller) ?? CALLERS[caller]?.() ?? assert.fail(caller);
  clients.set(caller, known);
  return known;
}

let made = 0;
const fresh = () => `fresh-${++made}`;
const storeFresh = async () => {
  const path = `matrix/${fresh()}`;
  await admin.post(CREDENTIALS, { path, value: 'a value' });
  return path;
};
const TARGETS = {
  targets: [{ origin: ORIGIN, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }],
  placement: { kind: 'bearer' },
};
const storeUsable = async () => {
  const path = await storeFresh();
  await admin.put(`/api/v1/targets/${path}`, TARGETS);
  return path;
};
const policyOf = (name: string) => ({ name, principal: 'agent:nobody', resources: ['matrix/a'], actions: ['list'] });
const makePolicy = async () => (await admin.post('/api/v1/policies', policyOf(fresh()))).body.data.name;
const makeAgent = async () => (await admin.post('/api/v1/agents', { name: fresh() })).body.data.name;
const newOperator = () => ({ name: fresh(), roles: ['viewer'], public_key: newOperatorKey().publicKey });
const makeOperator = async () => (await admin.post('/api/v1/operators', newOperator())).body.data.name;
const makeSlot = async () => (await admin.post('/api/v1/key/slots', { name: fresh(), kind: 'file' })).body.data.name;
const rootKey = readFileSync(join(dataDir, 'root.key'), 'utf8').trim();
const leasable = async () => {
  const path = await storeFresh();
  const targets = [{ origin: 'https://api.example.com' }];
  await admin.put(`/api/v1/targets/${path}`, { targets, placement: { kind: 'bearer' } });
  return { path };
};
/** A lease that the agent `with` holds. */
const lendToWith = async () => {
  const { body } = await (await clientOf('with')).get(`${CREDENTIALS}/${await storeFresh()}`);
  return body.data.lease_id;
};
let nonce = '';
/** An approval that the agent `with` has asked for. */
const askAsWith = async () => {
  const path = `asked/${fresh()}`;
  await admin.post(CREDENTIALS, { path, value: 'a value' });
  const held = await askToRetrieve(service, tokenOfWith, path);
  await held.abandon();
  nonce = held.nonce;
  return held.approval_id;
};
const proofOf = async (agent_name: string) => {
  const { challenge_id, nonce } = (await service.anonymous.post('/auth/challenge', { agent_name })).body.data;
  const signature = sign(null, Buffer.from(nonce, 'base64'), readAgentKey(dataDir, agent_name)).toString('base64');
  return { challenge_id, agent_name, signature };
};

/** The prerequisites of a call of the route, created separately for each caller. */
interface Setup {
  /** The value of the path parameter. */
  readonly parameter?: () => Promise<string>;
  readonly body?: () => Promise<unknown>;
  readonly query?: string;
  /** The statuses that differ from those of the table, by caller: agents need policies, and see only what is theirs. */
  readonly statuses?: Readonly<Record<string, number>>;
  /** The permission that a route without one checks for a caller with a token. */
  readonly optional?: Permission;
  /** Whether the call ends the caller's session. */
  readonly endsSession?: boolean;
  readonly after?: () => Promise<unknown>;
}

/** Lists have only what is the agent's. */
const FOR_EVERY_AGENT = { without: 200, another: 200 };
/** The agent `with` has the object of the path. */
const OF_ANOTHER = { without: 404, another: 404 };
const OF_NO_APPROVER = { 'operator:viewer': 403, 'operator:editor': 403 };
const INVALID = { everybody: 400 };

const SETUP: Readonly<Record<string, Setup>> = {
  'POST /api/v1/auth/handoff': { statuses: { admin: 403 } },
  'GET /api/v1/unlock': { statuses: INVALID },
  'POST /api/v1/auth/oidc/options': { statuses: { everybody: 404 } },
  'POST /auth/session/renew': { statuses: { with: 403, admin: 403 } },
  'GET /auth/session': { statuses: { ...FOR_EVERY_AGENT, admin: 404 } },
  'GET /api/v1/services': { statuses: FOR_EVERY_AGENT },
  'GET /api/v1/leases': { statuses: FOR_EVERY_AGENT },
  'GET /api/v1/approvals': { statuses: FOR_EVERY_AGENT },
  'GET /api/v1/credentials': { statuses: FOR_EVERY_AGENT },
  'GET /api/v1/credentials/{path}': { parameter: storeFresh },
  'POST /api/v1/credentials': { body: async () => ({ path: `matrix/${fresh()}`, value: 'v' }) },
  'DELETE /api/v1/credentials/{path}': { parameter: storeFresh },
  'PUT /api/v1/targets/{path}': {
    parameter: storeFresh,
    // WHY a public one: the other fields are an operator's decision.
    body: async () => ({ targets: [{ origin: 'https://api.example.com' }], placement: { kind: 'bearer' } }),
  },
  'GET /api/v1/targets/{path}': { parameter: storeUsable },
  'DELETE /api/v1/targets/{path}': { parameter: storeUsable },
  'POST /api/v1/use': { body: async () => ({ path: await storeUsable(), method: 'GET', url: `${ORIGIN}/` }) },
  'POST /api/v1/policies': { body: async () => policyOf(fresh()) },
  'POST /api/v1/policies/simulate': { body: async () => ({ agent: 'with', resource: 'matrix/a', action: 'retrieve' }) },
  'GET /api/v1/policies/{name}': { parameter: makePolicy },
  'PUT /api/v1/policies/{name}': {
    parameter: makePolicy,
    body: async () => ({ principal: 'agent:nobody', resources: ['matrix/a'], actions: ['list'] }),
  },
  'DELETE /api/v1/policies/{name}': { parameter: makePolicy },
  'POST /api/v1/agents': { body: async () => ({ name: fresh() }) },
  'GET /api/v1/agents/{name}': { parameter: makeAgent },
  'DELETE /api/v1/agents/{name}': { parameter: makeAgent },
  'POST /api/v1/agents/{name}/rotate': { parameter: makeAgent },
  'POST /api/v1/operators': { body: async () => newOperator() },
  'GET /api/v1/operators/{name}': { parameter: makeOperator },
  'PUT /api/v1/operators/{name}': { parameter: makeOperator, body: async () => ({ roles: ['admin'] }) },
  'POST /api/v1/operators/{name}/rotate': {
    parameter: makeOperator,
    body: async () => ({ public_key: newOperatorKey().publicKey }),
  },
  'DELETE /api/v1/operators/{name}': { parameter: makeOperator },
  'POST /api/v1/operators/{name}/enrolment': { parameter: makeOperator },
  'DELETE /api/v1/operators/{name}/passkeys/{id}': {
    statuses: { 'operator:viewer': 403, 'operator:approver': 403, 'operator:editor': 403 },
    parameter: async () => {
      const name = fresh();
      return `${name}/passkeys/${(await addWithPasskey(service, name)).id}`;
    },
  },
  'POST /api/v1/auth/passkey/verify': { body: async () => ({}), statuses: INVALID },
  'POST /api/v1/auth/passkey/register': { body: async () => ({}), statuses: INVALID },
  'POST /api/v1/auth/passkey/register-options': { optional: 'operator.passkey_add', statuses: { admin: 403 } },
  'POST /api/v1/auth/oidc/verify': { body: async () => ({}), statuses: INVALID },
  'POST /api/v1/auth/handoff/redeem': { body: async () => ({}), statuses: INVALID },
  'GET /api/v1/approvals/{approval_id}': { parameter: askAsWith, statuses: { ...OF_ANOTHER, ...OF_NO_APPROVER } },
  'POST /api/v1/approvals/{approval_id}/approve': { parameter: askAsWith, body: async () => ({ nonce }) },
  'POST /api/v1/approvals/{approval_id}/deny': {
    parameter: askAsWith,
    body: async () => ({ nonce, reason: 'not today' }),
  },
  'DELETE /api/v1/approvals/{approval_id}': { parameter: askAsWith, statuses: { ...OF_ANOTHER, ...OF_NO_APPROVER } },
  'POST /api/v1/key/slots': { body: async () => ({ name: fresh(), kind: 'file' }) },
  'DELETE /api/v1/key/slots/{name}': { parameter: makeSlot },
  'POST /api/v1/key/slots/{name}/test': { parameter: makeSlot },
  'POST /api/v1/lock': {
    // Has no effect unless the call has locked the vault.
    after: () => service.anonymous.post('/api/v1/unlock', { secret: rootKey }),
  },
  'POST /api/v1/unlock': { body: async () => ({ secret: rootKey }), statuses: INVALID },
  'DELETE /auth/session': { endsSession: true, statuses: { without: 204, another: 204, admin: 404 } },
  'POST /auth/challenge': { body: async () => ({ agent_name: 'with' }) },
  'POST /auth/verify': { body: () => proofOf('with') },
  'POST /api/v1/leases/use': { body: leasable, statuses: { admin: 403, 'operator:boss': 403 } },
  'POST /api/v1/leases/revoke': { body: async () => ({ agent: 'with' }) },
  'GET /api/v1/leases/{lease_id}': { parameter: lendToWith, statuses: OF_ANOTHER },
  'POST /api/v1/leases/{lease_id}/renew': {
    parameter: lendToWith,
    statuses: { ...OF_ANOTHER, 'operator:editor': 403 },
  },
  'DELETE /api/v1/leases/{lease_id}': { parameter: lendToWith, statuses: OF_ANOTHER },
  'GET /api/v1/exposure': { query: '?agent=with' },
  'GET /api/v1/exposure/{path}': { parameter: storeFresh },
  'GET /api/v1/panic': { query: '?agent=with' },
  'POST /api/v1/panic': { body: async () => ({ agent: await makeAgent() }), statuses: { 'operator:editor': 200 } },
  'GET /api/v1/audit/entries/{seq}/proof': { parameter: async () => '1' },
  'GET /api/v1/audit/consistency': { query: '?from=1' },
  'GET /api/v1/search': { query: '?q=matrix' },
};

/** The permission that the operation of the route checks; null if every client may call it. */
function permissionOf({ permission }: Route, { optional }: Setup): Permission | null {
  return permission ?? optional ?? null;
}

function holderOf(caller: string): PermissionIdentity {
  if (caller === 'admin') return { kind: 'admin' };
  const operator = OPERATORS.get(caller);
  return operator === undefined ? { kind: 'agent' } : { kind: 'operator', operator: { roles: [operator.role] } };
}

function statusFor(caller: string, route: Route, setup: Setup): number {
  const permission = permissionOf(route, setup);
  const given = setup.statuses?.[caller] ?? setup.statuses?.['everybody'];
  if (given !== undefined) return given;
  if (permission === null) return route.status;
  if (caller === 'nobody') return 401;
  const isGranted = lackOfPermission(permission, holderOf(caller)) === null;
  return isGranted && caller !== 'without' && caller !== 'another' ? route.status : 403;
}

/** The callers that differ at a route: agents are one at a route that only operators may call. */
function callersFor(route: Route, setup: Setup): readonly string[] {
  const permission = permissionOf(route, setup);
  if (permission === null && !route.takesSession) return ['nobody', 'admin'];
  const isForAgents = permission === null || PERMISSIONS[permission].agents;
  return Object.keys(CALLERS).filter((caller) => isForAgents || (caller !== 'without' && caller !== 'another'));
}

test('every permission is that of a route, except those that the body of a request selects', () => {
  const ofRoutes = ROUTES.map((route) => permissionOf(route, SETUP[`${route.method} ${route.path}`] ?? {}));
  const all = Object.entries<object | null>(PERMISSIONS).flatMap(([name, row]) => (row === null ? [] : [name]));
  const others = all.filter((permission) => !new Set<string | null>(ofRoutes).has(permission));
  const selected = ['agent.panic', 'key.rotate_audit', 'key.rotate_root'];
  // Recorded with any request of the administrator's token.
  assert.deepEqual(others.sort(), [...selected, 'operator.break_glass'].sort());
});

/** The denials that callers cause, oldest first. Background work, such as re-encryption, is recorded too. */
async function denialsOf(act: () => Promise<void>): Promise<string[]> {
  const entries = await auditEntriesOf(service, act);
  return entries
    .filter(({ agent_name, result }) => agent_name !== 'service' && result === 'denied')
    .map(({ event_type, agent_name, result }) => `${event_type} ${agent_name} ${result}`);
}

for (const route of ROUTES) {
  const { method, path } = route;
  const key = `${method} ${path}`;
  const setup = SETUP[key] ?? {};
  const permission = permissionOf(route, setup);
  test(`${key}: what each caller gets, and the denials that are recorded`, async () => {
    const expected: string[] = [];
    let parameter: string | null = null;
    const denials = await denialsOf(async () => {
      for (const caller of callersFor(route, setup)) {
        const status = statusFor(caller, route, setup);
        // An agent without the permission of the route is rejected before anything but the route and its token is read.
        const isAgent = holderOf(caller).kind === 'agent';
        const isUnread =
          status === 401 || (isAgent && route.permission !== null && !PERMISSIONS[route.permission].agents);
        // A read and a call that is rejected leave the object of its path for the next caller.
        parameter ??= (await setup.parameter?.()) ?? '';
        const target = path.replace(/\{\w+\}(?:\/passkeys\/\{id\})?/, parameter) + (setup.query ?? '');
        const body = isUnread ? undefined : await setup.body?.();
        const answer = await (await clientOf(caller)).call(method, target, body);
        if (!isUnread) await setup.after?.();
        if (answer.status < 300 && method !== 'GET') parameter = null;
        if (setup.endsSession === true) clients.delete(caller);
        assert.equal(answer.status, status, `${caller}: ${answer.text}`);
        assertConforms(answer, `${method.toLowerCase()} ${path}`);
        if (status === 401) assertRejected(answer, 'UNAUTHENTICATED');
        if (status === 404) assertRejected(answer, 'NOT_FOUND');
        if (status !== 403 || permission === null) continue;
        assertRejected(answer, 'ACCESS_DENIED');
        expected.push(`${eventOf(permission)} ${caller} denied`);
      }
    });
    assert.deepEqual(denials, expected);
  });
}

test('a rejected request changes nothing', async () => {
  const lists = ['/api/v1/policies', '/api/v1/agents', '/api/v1/operators', '/api/v1/leases?status=active'];
  const look = async () => Promise.all(lists.map((path) => admin.get(path)));
  const bodies = async () => (await look()).map(({ body }) => body.data.length);
  const before = await bodies();
  for (const name of [...AGENTS, 'operator:viewer', 'operator:approver']) {
    const client = await clientOf(name);
    await client.post('/api/v1/operators', newOperator());
    await client.delete('/api/v1/operators/editor');
    await client.post('/api/v1/policies', policyOf(fresh()));
    await client.put('/api/v1/policies/with-0', policyOf('with-0'));
    await client.delete('/api/v1/policies/with-0');
    await client.post('/api/v1/agents', { name: fresh() });
    await client.delete('/api/v1/agents/with');
  }
  assert.deepEqual(await bodies(), before);
  assert.equal((await admin.get('/api/v1/policies/with-0')).body.data.principal, 'agent:with');
});
