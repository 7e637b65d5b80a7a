// Authorization: every route × every kind of caller, cell by cell. A route without a row fails: deny by default.
// SOURCE: docs/decisions.md, "Agents and sessions" and "The audit log".

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { ROUTES } from '../../src/http/routes/table.ts';
import { startUpstream } from '../broker/upstream.ts';
import { type Client, createClient, logIn, readAgentKey } from '../kit/client.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { addWithPasskey, toLocalhost } from '../kit/sign-in.ts';
import { startTestClock } from '../kit/test-clock.ts';

const CREDENTIALS = '/api/v1/credentials';
const ALL = ['retrieve', 'use', 'list', 'store', 'delete'];

const upstream = await startUpstream({ after }, (_, response) => response.end('ok'));
const ORIGIN = `https://127.0.0.1:${upstream.port}`;

const clock = startTestClock({ after });
const service = await startTestService({ after });
const { admin, dataDir } = service;
// Where passkeys work.
const address = toLocalhost(service.address);
await service.agent('without');
await service.agent('with', { 'matrix/*': ALL });
await service.agent('another', { 'other/*': ALL });
const expired = await service.agent('expired', { 'matrix/*': ALL });
await clock.moveTo((await expired.get('/auth/session')).body.data.expires_at);
// Any next entry: a service that shares its database learns the time from a batch.
await admin.get(CREDENTIALS);

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
/** A separate session for each cell, since some cells end it. */
const enter = async (name: string) => createClient(address, await logIn(address, name, readAgentKey(dataDir, name)));
const CALLERS: Readonly<Record<string, () => Promise<Client>>> = {
  nobody: async () => createClient(address, null),
  'an invalid token': async () => createClient(address, `lhs_${'A'.repeat(43)}`),
  'an expired session': async () => createClient(address, expired.token),
  without: () => enter('without'),
  with: () => enter('with'),
  another: () => enter('another'),
  admin: async () => createClient(address, service.adminToken),
  ...Object.fromEntries(
    ROLES.map((role) => [`operator:${role}`, async () => createClient(address, await operators[role].enter())]),
  ),
};

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
  const { body } = await (await enter('with')).get(`${CREDENTIALS}/${await storeFresh()}`);
  return body.data.lease_id;
};
let nonce = '';
/** An approval that the agent `with` has asked for. */
const askAsWith = async () => {
  const path = `asked/${fresh()}`;
  await admin.post(CREDENTIALS, { path, value: 'a value' });
  const held = await askToRetrieve(service, await logIn(address, 'with', readAgentKey(dataDir, 'with')), path);
  await held.abandon();
  nonce = held.nonce;
  return held.approval_id;
};
const proofOf = async (agent_name: string) => {
  const { challenge_id, nonce } = (await service.anonymous.post('/auth/challenge', { agent_name })).body.data;
  const signature = sign(null, Buffer.from(nonce, 'base64'), readAgentKey(dataDir, agent_name)).toString('base64');
  return { challenge_id, agent_name, signature };
};

interface Expected {
  /** Statuses for an agent without grants, one with grants (or the owner), another agent, the administrator. */
  readonly cells: readonly [without: number, having: number, another: number, admin: number];
  /** Statuses for operators. */
  readonly operators: readonly [viewer: number, approver: number, editor: number, admin: number];
  /** The event type of a recorded denial; null where every caller is allowed. */
  readonly event: string | null;
  /** The value of the path parameter, created for each cell. */
  readonly parameter?: () => Promise<string>;
  readonly body?: () => Promise<unknown>;
  readonly query?: string;
  /** Whether a public route authenticates a token that it gets. */
  readonly takesSession?: boolean;
  /** Runs after each call. */
  readonly after?: () => Promise<unknown>;
}

const FORBIDDEN = [403, 403, 403] as const;
/** Of a sign-in, whose body lacks everything. */
const INVALID = { cells: [400, 400, 400, 400], operators: [400, 400, 400, 400], body: async () => ({}) } as const;
const MATRIX: Readonly<Record<string, Expected>> = {
  'GET /api/v1/credentials': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: 'credential.list' },
  'GET /api/v1/credentials/{path}': {
    cells: [403, 200, 403, 200],
    operators: [403, 403, 200, 200],
    event: 'credential.retrieve',
    parameter: storeFresh,
  },
  'POST /api/v1/credentials': {
    cells: [403, 201, 403, 201],
    operators: [403, 403, 201, 201],
    event: 'credential.store',
    body: async () => ({ path: `matrix/${fresh()}`, value: 'v' }),
  },
  'DELETE /api/v1/credentials/{path}': {
    cells: [403, 204, 403, 204],
    operators: [403, 403, 204, 204],
    event: 'credential.delete',
    parameter: storeFresh,
  },
  'PUT /api/v1/targets/{path}': {
    cells: [403, 200, 403, 200],
    operators: [403, 403, 200, 200],
    event: 'target.put',
    parameter: storeFresh,
    // WHY a public one: the other fields are an operator's decision.
    body: async () => ({ targets: [{ origin: 'https://api.example.com' }], placement: { kind: 'bearer' } }),
  },
  'GET /api/v1/targets/{path}': {
    cells: [403, 200, 403, 200],
    operators: [200, 200, 200, 200],
    event: 'target.read',
    parameter: storeUsable,
  },
  'DELETE /api/v1/targets/{path}': {
    cells: [403, 204, 403, 204],
    operators: [403, 403, 204, 204],
    event: 'target.delete',
    parameter: storeUsable,
  },
  'POST /api/v1/use': {
    cells: [403, 200, 403, 200],
    operators: [403, 403, 403, 200],
    event: 'credential.use',
    body: async () => ({ path: await storeUsable(), method: 'GET', url: `${ORIGIN}/` }),
  },
  'GET /api/v1/policies': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'policy.list' },
  'POST /api/v1/policies': {
    cells: [...FORBIDDEN, 201],
    operators: [403, 403, 201, 201],
    event: 'policy.create',
    body: async () => policyOf(fresh()),
  },
  'POST /api/v1/policies/simulate': {
    cells: [403, 200, 403, 200],
    operators: [200, 200, 200, 200],
    event: 'policy.simulate',
    body: async () => ({ agent: 'with', resource: 'matrix/a', action: 'retrieve' }),
  },
  'GET /api/v1/policies/{name}': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'policy.read',
    parameter: makePolicy,
  },
  'PUT /api/v1/policies/{name}': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 200, 200],
    event: 'policy.replace',
    parameter: makePolicy,
    body: async () => ({ principal: 'agent:nobody', resources: ['matrix/a'], actions: ['list'] }),
  },
  'DELETE /api/v1/policies/{name}': {
    cells: [...FORBIDDEN, 204],
    operators: [403, 403, 204, 204],
    event: 'policy.delete',
    parameter: makePolicy,
  },
  'GET /api/v1/agents': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'agent.list' },
  'POST /api/v1/agents': {
    cells: [...FORBIDDEN, 201],
    operators: [403, 403, 201, 201],
    event: 'agent.register',
    body: async () => ({ name: fresh() }),
  },
  'GET /api/v1/agents/{name}': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'agent.read',
    parameter: makeAgent,
  },
  'DELETE /api/v1/agents/{name}': {
    cells: [...FORBIDDEN, 204],
    operators: [403, 403, 204, 204],
    event: 'agent.deregister',
    parameter: makeAgent,
  },
  'POST /api/v1/agents/{name}/rotate': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 200, 200],
    event: 'agent.rotate',
    parameter: makeAgent,
  },
  'GET /api/v1/operators': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'operator.list' },
  'POST /api/v1/operators': {
    cells: [...FORBIDDEN, 201],
    operators: [403, 403, 403, 201],
    event: 'operator.add',
    body: async () => newOperator(),
  },
  'GET /api/v1/operators/{name}': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'operator.read',
    parameter: makeOperator,
  },
  'PUT /api/v1/operators/{name}': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 403, 200],
    event: 'operator.replace',
    parameter: makeOperator,
    body: async () => ({ roles: ['admin'] }),
  },
  'POST /api/v1/operators/{name}/rotate': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 403, 200],
    event: 'operator.rotate',
    parameter: makeOperator,
    body: async () => ({ public_key: newOperatorKey().publicKey }),
  },
  'DELETE /api/v1/operators/{name}': {
    cells: [...FORBIDDEN, 204],
    operators: [403, 403, 403, 204],
    event: 'operator.remove',
    parameter: makeOperator,
  },
  'POST /api/v1/operators/{name}/enrolment': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 403, 200],
    event: 'operator.invite',
    parameter: makeOperator,
  },
  'DELETE /api/v1/operators/{name}/passkeys/{id}': {
    cells: [...FORBIDDEN, 204],
    operators: [403, 403, 403, 204],
    event: 'operator.passkey_remove',
    parameter: async () => {
      const name = fresh();
      return `${name}/passkeys/${(await addWithPasskey(service, name)).id}`;
    },
  },
  'GET /api/v1/auth/methods': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: null },
  'POST /api/v1/auth/browser': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'session.browser',
  },
  'POST /api/v1/auth/passkey/options': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: null },
  'POST /api/v1/auth/passkey/verify': { ...INVALID, event: null },
  'POST /api/v1/auth/passkey/register-options': {
    cells: [403, 403, 403, 403],
    operators: [200, 200, 200, 200],
    event: 'operator.passkey_add',
  },
  'POST /api/v1/auth/passkey/register': { ...INVALID, event: null, takesSession: true },
  'POST /api/v1/auth/oidc/options': { cells: [404, 404, 404, 404], operators: [404, 404, 404, 404], event: null },
  'POST /api/v1/auth/oidc/verify': { ...INVALID, event: null },
  'POST /api/v1/auth/handoff': {
    cells: [403, 403, 403, 403],
    operators: [200, 200, 200, 200],
    event: 'session.handoff',
  },
  'POST /api/v1/auth/handoff/redeem': { ...INVALID, event: null },
  'GET /api/v1/approvals': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: 'approval.list' },
  'GET /api/v1/approvals/{approval_id}': {
    cells: [404, 200, 404, 200],
    operators: [403, 200, 403, 200],
    event: 'approval.read',
    parameter: askAsWith,
  },
  'POST /api/v1/approvals/{approval_id}/approve': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 200, 403, 200],
    event: 'approval.approve',
    parameter: askAsWith,
    body: async () => ({ nonce }),
  },
  'POST /api/v1/approvals/{approval_id}/deny': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 200, 403, 200],
    event: 'approval.deny',
    parameter: askAsWith,
    body: async () => ({ nonce, reason: 'not today' }),
  },
  'DELETE /api/v1/approvals/{approval_id}': {
    cells: [404, 204, 404, 204],
    operators: [403, 204, 403, 204],
    event: 'approval.withdraw',
    parameter: askAsWith,
  },
  'GET /api/v1/key/slots': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'key.slot_list' },
  'POST /api/v1/key/slots': {
    cells: [...FORBIDDEN, 201],
    operators: [403, 403, 403, 201],
    event: 'key.slot_add',
    body: async () => ({ name: fresh(), kind: 'file' }),
  },
  'DELETE /api/v1/key/slots/{name}': {
    cells: [...FORBIDDEN, 204],
    operators: [403, 403, 403, 204],
    event: 'key.slot_remove',
    parameter: makeSlot,
  },
  'POST /api/v1/key/slots/{name}/test': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 403, 200],
    event: 'key.slot_test',
    parameter: makeSlot,
  },
  'POST /api/v1/key/rotate': { cells: [...FORBIDDEN, 200], operators: [403, 403, 403, 200], event: 'key.rotate' },
  'POST /api/v1/lock': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 403, 200],
    event: 'service.lock',
    // Without effect unless the call has locked the vault. The clocks are set again first: the vault is not unlocked if
    // that of the database differs by a minute.
    after: async () => {
      await clock.move(0);
      return service.anonymous.post('/api/v1/unlock', { secret: rootKey });
    },
  },
  'GET /api/v1/unlock': { cells: [400, 400, 400, 400], operators: [400, 400, 400, 400], event: null },
  'POST /api/v1/unlock': {
    cells: [400, 400, 400, 400],
    operators: [400, 400, 400, 400],
    event: null,
    body: async () => ({ secret: rootKey }),
  },
  'POST /auth/challenge': {
    cells: [200, 200, 200, 200],
    operators: [200, 200, 200, 200],
    event: null,
    body: async () => ({ agent_name: 'with' }),
  },
  'POST /auth/verify': {
    cells: [200, 200, 200, 200],
    operators: [200, 200, 200, 200],
    event: null,
    body: () => proofOf('with'),
  },
  'GET /auth/session': { cells: [200, 200, 200, 404], operators: [200, 200, 200, 200], event: 'session.read' },
  'POST /auth/session/renew': {
    cells: [403, 403, 403, 403],
    operators: [200, 200, 200, 200],
    event: 'session.renew',
  },
  'DELETE /auth/session': { cells: [204, 204, 204, 404], operators: [204, 204, 204, 204], event: 'session.end' },
  'GET /api/v1/leases': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: 'lease.list' },
  'POST /api/v1/leases/use': {
    cells: [403, 201, 403, 403],
    operators: [403, 403, 403, 403],
    event: 'lease.use',
    body: leasable,
  },
  'POST /api/v1/leases/revoke': {
    cells: [403, 200, 403, 200],
    operators: [403, 403, 200, 200],
    event: 'lease.revoke',
    body: async () => ({ agent: 'with' }),
  },
  'GET /api/v1/leases/{lease_id}': {
    cells: [404, 200, 404, 200],
    operators: [200, 200, 200, 200],
    event: 'lease.read',
    parameter: lendToWith,
  },
  'POST /api/v1/leases/{lease_id}/renew': {
    cells: [404, 200, 404, 200],
    operators: [403, 403, 403, 200],
    event: 'lease.renew',
    parameter: lendToWith,
  },
  'DELETE /api/v1/leases/{lease_id}': {
    cells: [404, 204, 404, 204],
    operators: [403, 403, 204, 204],
    event: 'lease.revoke',
    parameter: lendToWith,
  },
  'GET /api/v1/exposure': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'exposure.read',
    query: '?agent=with',
  },
  'GET /api/v1/exposure/{path}': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'exposure.read',
    parameter: storeFresh,
  },
  'GET /api/v1/panic': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'exposure.read',
    query: '?agent=with',
  },
  'POST /api/v1/panic': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 200, 200],
    event: 'service.panic',
    body: async () => ({ agent: await makeAgent() }),
  },
  'GET /api/v1/audit': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'audit.list' },
  'GET /api/v1/audit/verify': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'audit.verify' },
  'GET /api/v1/audit/verify/progress': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'audit.verify',
  },
  'GET /api/v1/audit/checkpoint': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'audit.checkpoint',
  },
  'GET /api/v1/audit/entries/{seq}/proof': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'audit.proof',
    parameter: async () => '1',
  },
  'GET /api/v1/audit/consistency': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'audit.proof',
    query: '?from=1',
  },
  'GET /api/v1/audit/rollback': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'audit.verify' },
  'POST /api/v1/audit/rollback': {
    cells: [...FORBIDDEN, 200],
    operators: [403, 403, 403, 200],
    event: 'audit.accept_rollback',
  },
  'GET /api/v1/audit/export': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'audit.export' },
  'GET /api/v1/matrix': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'policy.simulate' },
  'GET /api/v1/tree': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'credential.list' },
  'GET /api/v1/search': {
    cells: [...FORBIDDEN, 200],
    operators: [200, 200, 200, 200],
    event: 'service.read',
    query: '?q=matrix',
  },
  'GET /api/v1/attention': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'service.read' },
  'GET /api/v1/activity': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'service.read' },
  'GET /api/v1/nodes': { cells: [...FORBIDDEN, 200], operators: [200, 200, 200, 200], event: 'service.read' },
  'POST /api/v1/backup': { cells: [...FORBIDDEN, 200], operators: [403, 403, 403, 200], event: 'service.backup' },
  'GET /api/v1/services': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: 'target.read' },
  'GET /api/v1/health': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: null },
  'GET /metrics': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: null },
  'GET /livez': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: null },
  'GET /readyz': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: null },
  'GET /openapi.json': { cells: [200, 200, 200, 200], operators: [200, 200, 200, 200], event: null },
};

test('every route has a row in the matrix, and every row a route', () => {
  assert.deepEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort(), Object.keys(MATRIX).sort());
});

/** The status that a caller gets: unauthenticated callers reach public routes only. */
function statusOf({ cells, operators, event, takesSession = false }: Expected, caller: string): number {
  const [without, having, another, administrator] = cells;
  const known: Record<string, number> = { without, with: having, another, admin: administrator };
  for (const [index, role] of ROLES.entries()) known[`operator:${role}`] = operators[index] ?? assert.fail(role);
  const isPublic = event === null && !(takesSession && caller !== 'nobody');
  return known[caller] ?? (isPublic ? administrator : 401);
}

/** Whether a caller caused the entry. Work in the background, such as sealing again, is recorded at any time. */
const isOfCaller = ({ agent_name }: { readonly agent_name: string }): boolean => agent_name !== 'service';

for (const { method, path: canonical, aliases } of ROUTES) {
  const expected = MATRIX[`${method} ${canonical}`];
  if (expected === undefined) continue;
  const { event } = expected;
  for (const path of [canonical, ...aliases]) {
    suite(`${method} ${path}`, () => {
      for (const [caller, enterAs] of Object.entries(CALLERS)) {
        const status = statusOf(expected, caller);
        test(`${method} ${path} as ${caller}: ${status}`, async () => {
          const parameter = (await expected.parameter?.()) ?? '';
          const body = await expected.body?.();
          const client = await enterAs();
          let answer = { status: 0 } as Awaited<ReturnType<Client['call']>>;
          const entries = await auditEntriesOf(service, async () => {
            answer = await client.call(
              method,
              path.replace(/\{\w+\}(?:\/passkeys\/\{id\})?/, parameter) + (expected.query ?? ''),
              body,
            );
          });
          await expected.after?.();
          assert.equal(answer.status, status, answer.text);
          if (status === 401) {
            assertRejected(answer, caller === 'an expired session' ? 'SESSION_EXPIRED' : 'UNAUTHENTICATED');
            assert.deepEqual(entries.filter(isOfCaller), []);
          }
          if (status === 403) {
            assertRejected(answer, 'ACCESS_DENIED');
            const seen = entries
              .filter(isOfCaller)
              .map(({ event_type, agent_name, result }) => `${event_type} ${agent_name} ${result}`);
            assert.deepEqual(seen, [`${event} ${caller} denied`]);
          }
          if (status === 404) assertRejected(answer, 'NOT_FOUND');
        });
      }
    });
  }
}

suite('a request to an administrator route without the role is 403 and recorded once, however malformed', () => {
  for (const { method, path, who, query } of ROUTES) {
    if (who !== 'admin') continue;
    // An operator removes its own passkeys, whatever its role.
    const isForApprovers = MATRIX[`${method} ${path}`]?.operators[1] !== 403 || path.includes('/passkeys/');
    const unknown = `${path.replace(/\{\w+\}/, 'some-name')}?unknown=1`;
    const malformed = path.includes('{')
      ? path.replace(/\{\w+\}/, '-bad-')
      : `${path}?${Object.keys(query.properties)[0] ?? 'x'}=-`;
    for (const [target, caller] of [
      ...[unknown, malformed].map((target) => [target, 'with'] as const),
      ...[unknown, malformed].map((target) => [target, 'operator:approver'] as const),
    ]) {
      if (caller !== 'with' && isForApprovers) continue;
      test(`${method} ${target} as ${caller}: 403, recorded`, async () => {
        const client = (await CALLERS[caller]?.()) ?? assert.fail(caller);
        const entries = await auditEntriesOf(service, async () => {
          const body = method === 'POST' || method === 'PUT' ? { nothing: 'of this' } : undefined;
          assertRejected(await client.call(method, target, body), 'ACCESS_DENIED');
        });
        assert.deepEqual(
          entries.filter(isOfCaller).map(({ event_type, agent_name, result }) => [event_type, agent_name, result]),
          [[MATRIX[`${method} ${path}`]?.event, caller, 'denied']],
        );
      });
    }
  }
});

test('a rejected request changes nothing', async () => {
  const lists = ['/api/v1/policies', '/api/v1/agents', '/api/v1/operators', '/api/v1/leases?status=active'];
  const look = async () => Promise.all(lists.map((path) => admin.get(path)));
  const bodies = async () => (await look()).map(({ body }) => body.data.length);
  const before = await bodies();
  for (const name of [...AGENTS, 'operator:viewer', 'operator:approver']) {
    const client = (await CALLERS[name]?.()) ?? assert.fail(name);
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
