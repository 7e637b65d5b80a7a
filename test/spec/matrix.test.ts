// Authorization: every route × every kind of caller. A route without a row fails: deny by default. Each response
// conforms to the OpenAPI document, including every key.
// SOURCE: docs/decisions.md, "Agents and sessions" and "The audit log".

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Route } from '../../src/http/route.ts';
import { ROUTES } from '../../src/http/routes/table.ts';
import { startUpstream } from '../broker/upstream.ts';
import { type Client, createClient, logIn, readAgentKey } from '../kit/client.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
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

/** The name of each operator is its only role. */
const ROLES = ['viewer', 'approver', 'editor', 'boss'] as const;
const operators = {
  viewer: await addOperator(service, 'viewer', ['viewer']),
  approver: await addOperator(service, 'approver', ['approver']),
  editor: await addOperator(service, 'editor', ['editor'], { 'matrix/*': ALL }),
  // The name admin is reserved.
  boss: await addOperator(service, 'boss', ['admin']),
};

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
    ROLES.map((role) => [`operator:${role}`, async () => createClient(address, await operators[role].enter())]),
  ),
};

/** The callers that differ at a route: agents are one at a route that only operators may call. */
function callersFor(who: Route['who'], isPublic: boolean): readonly string[] {
  if (isPublic) return ['nobody', 'admin'];
  return Object.keys(CALLERS).filter((caller) => who !== 'admin' || (caller !== 'without' && caller !== 'another'));
}

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

/** What a call of the route needs; each is made anew for each caller. */
interface Setup {
  /** The value of the path parameter. */
  readonly parameter?: () => Promise<string>;
  readonly body?: () => Promise<unknown>;
  readonly query?: string;
  /** Whether a public route authenticates a token that it gets. */
  readonly takesSession?: boolean;
  /** Whether the call ends the caller's session. */
  readonly endsSession?: boolean;
  readonly after?: () => Promise<unknown>;
}

const SETUP: Readonly<Record<string, Setup>> = {
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
    parameter: async () => {
      const name = fresh();
      return `${name}/passkeys/${(await addWithPasskey(service, name)).id}`;
    },
  },
  'POST /api/v1/auth/passkey/verify': { body: async () => ({}) },
  'POST /api/v1/auth/passkey/register': { body: async () => ({}), takesSession: true },
  'POST /api/v1/auth/oidc/verify': { body: async () => ({}) },
  'POST /api/v1/auth/handoff/redeem': { body: async () => ({}) },
  'GET /api/v1/approvals/{approval_id}': { parameter: askAsWith },
  'POST /api/v1/approvals/{approval_id}/approve': { parameter: askAsWith, body: async () => ({ nonce }) },
  'POST /api/v1/approvals/{approval_id}/deny': {
    parameter: askAsWith,
    body: async () => ({ nonce, reason: 'not today' }),
  },
  'DELETE /api/v1/approvals/{approval_id}': { parameter: askAsWith },
  'POST /api/v1/key/slots': { body: async () => ({ name: fresh(), kind: 'file' }) },
  'DELETE /api/v1/key/slots/{name}': { parameter: makeSlot },
  'POST /api/v1/key/slots/{name}/test': { parameter: makeSlot },
  'POST /api/v1/lock': {
    // Without effect unless the call has locked the vault.
    after: () => service.anonymous.post('/api/v1/unlock', { secret: rootKey }),
  },
  'POST /api/v1/unlock': { body: async () => ({ secret: rootKey }) },
  'DELETE /auth/session': { endsSession: true },
  'POST /auth/challenge': { body: async () => ({ agent_name: 'with' }) },
  'POST /auth/verify': { body: () => proofOf('with') },
  'POST /api/v1/leases/use': { body: leasable },
  'POST /api/v1/leases/revoke': { body: async () => ({ agent: 'with' }) },
  'GET /api/v1/leases/{lease_id}': { parameter: lendToWith },
  'POST /api/v1/leases/{lease_id}/renew': { parameter: lendToWith },
  'DELETE /api/v1/leases/{lease_id}': { parameter: lendToWith },
  'GET /api/v1/exposure': { query: '?agent=with' },
  'GET /api/v1/exposure/{path}': { parameter: storeFresh },
  'GET /api/v1/panic': { query: '?agent=with' },
  'POST /api/v1/panic': { body: async () => ({ agent: await makeAgent() }) },
  'GET /api/v1/audit/entries/{seq}/proof': { parameter: async () => '1' },
  'GET /api/v1/audit/consistency': { query: '?from=1' },
  'GET /api/v1/search': { query: '?q=matrix' },
};

/**
 * The route; the statuses for an agent without grants, one with grants (or the owner), another agent and the
 * administrator; those for operators with the roles viewer, approver, editor and admin; the event of a recorded denial.
 * A public route that takes no token has one status, for everybody, and no event.
 */
const MATRIX = `
GET /api/v1/credentials                        200 200 200 200  200 200 200 200  credential.list
GET /api/v1/credentials/{path}                 403 200 403 200  403 403 200 200  credential.retrieve
POST /api/v1/credentials                       403 201 403 201  403 403 201 201  credential.store
DELETE /api/v1/credentials/{path}              403 204 403 204  403 403 204 204  credential.delete
PUT /api/v1/targets/{path}                     403 200 403 200  403 403 200 200  target.put
GET /api/v1/targets/{path}                     403 200 403 200  200 200 200 200  target.read
DELETE /api/v1/targets/{path}                  403 204 403 204  403 403 204 204  target.delete
POST /api/v1/use                               403 200 403 200  403 403 403 200  credential.use
GET /api/v1/policies                           403 403 403 200  200 200 200 200  policy.list
POST /api/v1/policies                          403 403 403 201  403 403 201 201  policy.create
POST /api/v1/policies/simulate                 403 200 403 200  200 200 200 200  policy.simulate
GET /api/v1/policies/{name}                    403 403 403 200  200 200 200 200  policy.read
PUT /api/v1/policies/{name}                    403 403 403 200  403 403 200 200  policy.replace
DELETE /api/v1/policies/{name}                 403 403 403 204  403 403 204 204  policy.delete
GET /api/v1/agents                             403 403 403 200  200 200 200 200  agent.list
POST /api/v1/agents                            403 403 403 201  403 403 201 201  agent.register
GET /api/v1/agents/{name}                      403 403 403 200  200 200 200 200  agent.read
DELETE /api/v1/agents/{name}                   403 403 403 204  403 403 204 204  agent.deregister
POST /api/v1/agents/{name}/rotate              403 403 403 200  403 403 200 200  agent.rotate
GET /api/v1/operators                          403 403 403 200  200 200 200 200  operator.list
POST /api/v1/operators                         403 403 403 201  403 403 403 201  operator.add
GET /api/v1/operators/{name}                   403 403 403 200  200 200 200 200  operator.read
PUT /api/v1/operators/{name}                   403 403 403 200  403 403 403 200  operator.replace
POST /api/v1/operators/{name}/rotate           403 403 403 200  403 403 403 200  operator.rotate
DELETE /api/v1/operators/{name}                403 403 403 204  403 403 403 204  operator.remove
POST /api/v1/operators/{name}/enrolment        403 403 403 200  403 403 403 200  operator.invite
DELETE /api/v1/operators/{name}/passkeys/{id}  403 403 403 204  403 403 403 204  operator.passkey_remove
GET /api/v1/auth/methods                       200                                 -
POST /api/v1/auth/browser                      403 403 403 200  200 200 200 200  session.browser
POST /api/v1/auth/passkey/options              200                                 -
POST /api/v1/auth/passkey/verify               400                                 -
POST /api/v1/auth/passkey/register-options     403 403 403 403  200 200 200 200  operator.passkey_add
POST /api/v1/auth/passkey/register             400 400 400 400  400 400 400 400  -
POST /api/v1/auth/oidc/options                 404                                 -
POST /api/v1/auth/oidc/verify                  400                                 -
POST /api/v1/auth/handoff                      403 403 403 403  200 200 200 200  session.handoff
POST /api/v1/auth/handoff/redeem               400                                 -
GET /api/v1/approvals                          200 200 200 200  200 200 200 200  approval.list
GET /api/v1/approvals/{approval_id}            404 200 404 200  403 200 403 200  approval.read
POST /api/v1/approvals/{approval_id}/approve   403 403 403 200  403 200 403 200  approval.approve
POST /api/v1/approvals/{approval_id}/deny      403 403 403 200  403 200 403 200  approval.deny
DELETE /api/v1/approvals/{approval_id}         404 204 404 204  403 204 403 204  approval.withdraw
GET /api/v1/key/slots                          403 403 403 200  200 200 200 200  key.slot_list
POST /api/v1/key/slots                         403 403 403 201  403 403 403 201  key.slot_add
DELETE /api/v1/key/slots/{name}                403 403 403 204  403 403 403 204  key.slot_remove
POST /api/v1/key/slots/{name}/test             403 403 403 200  403 403 403 200  key.slot_test
POST /api/v1/key/rotate                        403 403 403 200  403 403 403 200  key.rotate
POST /api/v1/lock                              403 403 403 200  403 403 403 200  service.lock
GET /api/v1/unlock                             400                                 -
POST /api/v1/unlock                            400                                 -
POST /auth/challenge                           200                                 -
POST /auth/verify                              200                                 -
GET /auth/session                              200 200 200 404  200 200 200 200  session.read
POST /auth/session/renew                       403 403 403 403  200 200 200 200  session.renew
DELETE /auth/session                           204 204 204 404  204 204 204 204  session.end
GET /api/v1/leases                             200 200 200 200  200 200 200 200  lease.list
POST /api/v1/leases/use                        403 201 403 403  403 403 403 403  lease.use
POST /api/v1/leases/revoke                     403 200 403 200  403 403 200 200  lease.revoke
GET /api/v1/leases/{lease_id}                  404 200 404 200  200 200 200 200  lease.read
POST /api/v1/leases/{lease_id}/renew           404 200 404 200  403 403 403 200  lease.renew
DELETE /api/v1/leases/{lease_id}               404 204 404 204  403 403 204 204  lease.revoke
GET /api/v1/exposure                           403 403 403 200  200 200 200 200  exposure.read
GET /api/v1/exposure/{path}                    403 403 403 200  200 200 200 200  exposure.read
GET /api/v1/panic                              403 403 403 200  200 200 200 200  exposure.read
POST /api/v1/panic                             403 403 403 200  403 403 200 200  service.panic
GET /api/v1/audit                              403 403 403 200  200 200 200 200  audit.list
GET /api/v1/audit/verify                       403 403 403 200  200 200 200 200  audit.verify
GET /api/v1/audit/verify/progress              403 403 403 200  200 200 200 200  audit.verify
GET /api/v1/audit/checkpoint                   403 403 403 200  200 200 200 200  audit.checkpoint
GET /api/v1/audit/entries/{seq}/proof          403 403 403 200  200 200 200 200  audit.proof
GET /api/v1/audit/consistency                  403 403 403 200  200 200 200 200  audit.proof
GET /api/v1/audit/rollback                     403 403 403 200  200 200 200 200  audit.verify
POST /api/v1/audit/rollback                    403 403 403 200  403 403 403 200  audit.accept_rollback
GET /api/v1/audit/export                       403 403 403 200  200 200 200 200  audit.export
GET /api/v1/matrix                             403 403 403 200  200 200 200 200  policy.simulate
GET /api/v1/tree                               403 403 403 200  200 200 200 200  credential.list
GET /api/v1/search                             403 403 403 200  200 200 200 200  service.read
GET /api/v1/attention                          403 403 403 200  200 200 200 200  service.read
GET /api/v1/activity                           403 403 403 200  200 200 200 200  service.read
GET /api/v1/nodes                              403 403 403 200  200 200 200 200  service.read
POST /api/v1/backup                            403 403 403 200  403 403 403 200  service.backup
GET /api/v1/services                           200 200 200 200  200 200 200 200  target.read
GET /api/v1/health                             200                                 -
GET /metrics                                   200                                 -
GET /livez                                     200                                 -
GET /readyz                                    200                                 -
GET /openapi.json                              200                                 -
`;
const FIELDS = ['without', 'with', 'another', 'admin', ...ROLES.map((role) => `operator:${role}`)];
const ROWS = new Map(
  MATRIX.trim()
    .split('\n')
    .map((line) => {
      const [method = '', path = '', ...cells] = line.split(/ +/);
      const event = cells.pop() ?? '-';
      const fields = cells.length === 1 ? ['admin'] : FIELDS;
      const statuses = new Map(cells.map((cell, at) => [fields[at] ?? assert.fail(line), Number(cell)]));
      return [`${method} ${path}`, { event, statuses }];
    }),
);

test('every route has a row in the matrix, and every row a route', () => {
  assert.deepEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort(), [...ROWS.keys()].sort());
});

/** The denials that callers cause, oldest first. Work in the background, such as sealing again, is recorded too. */
async function denialsOf(act: () => Promise<void>): Promise<string[]> {
  const entries = await auditEntriesOf(service, act);
  return entries
    .filter(({ agent_name, result }) => agent_name !== 'service' && result === 'denied')
    .map(({ event_type, agent_name, result }) => `${event_type} ${agent_name} ${result}`);
}

for (const { method, path, who } of ROUTES) {
  const key = `${method} ${path}`;
  const row = ROWS.get(key);
  if (row === undefined) continue;
  const { query = '', takesSession = false, endsSession = false, ...setup } = SETUP[key] ?? {};
  const isPublic = row.event === '-';
  test(`${key}: what each caller gets, and the denials that are recorded`, async () => {
    const expected: string[] = [];
    let parameter: string | null = null;
    const denials = await denialsOf(async () => {
      for (const caller of callersFor(who, isPublic && !takesSession)) {
        const admitted: number | undefined =
          isPublic && !(takesSession && caller !== 'nobody') ? row.statuses.get('admin') : 401;
        const status: number | undefined = row.statuses.get(caller) ?? admitted;
        // It is rejected before anything of the request but its route and token is read. An operator's role may depend
        // on the body.
        const isUnread = status === 401 || (status === 403 && who === 'admin' && !caller.startsWith('operator:'));
        // A read and a call that is rejected leave the object of its path for the next caller.
        parameter ??= (await setup.parameter?.()) ?? '';
        const target = path.replace(/\{\w+\}(?:\/passkeys\/\{id\})?/, parameter) + query;
        const body = isUnread ? undefined : await setup.body?.();
        const answer = await (await clientOf(caller)).call(method, target, body);
        if (!isUnread) await setup.after?.();
        if (answer.status < 300 && method !== 'GET') parameter = null;
        if (endsSession) clients.delete(caller);
        assert.equal(answer.status, status, `${caller}: ${answer.text}`);
        assertConforms(answer, `${method.toLowerCase()} ${path}`);
        if (status === 401) assertRejected(answer, 'UNAUTHENTICATED');
        if (status === 404) assertRejected(answer, 'NOT_FOUND');
        if (status !== 403) continue;
        assertRejected(answer, 'ACCESS_DENIED');
        expected.push(`${row.event} ${caller} denied`);
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
