// Events that the audit log does not record, so that unauthenticated callers cannot grow it. SOURCE: docs/decisions.md,
// "The audit log".

import assert from 'node:assert/strict';
import { randomUUID, sign } from 'node:crypto';
import { after, test } from 'node:test';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { readAgentKey, type TestResponse } from '../kit/client.ts';
import { lockDatabase } from '../kit/direct-db.ts';
import { addOperator } from '../kit/operators.ts';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';

const service = await startTestService({ after });
const { admin, anonymous, address, dataDir } = service;
const agent = await service.agent('worker', { 'jobs/*': ['retrieve'] });
const key = readAgentKey(dataDir, 'worker');
await admin.post('/api/v1/policies', { name: 'p', principal: 'agent:a', resources: ['a'], actions: ['list'] });
await admin.post(CREDENTIALS, { path: 'jobs/key', value: 'v' });
const watcher = await addOperator(service, 'watcher', ['viewer']);
const { lease_id } = (await agent.get(`${CREDENTIALS}/jobs/key`)).body.data;

const auth = `Authorization: Bearer ${service.adminToken}`;
const raw = (method: string, path: string, headers: string[], body = '') =>
  sendRaw(address, rawRequest([`${method} ${path} HTTP/1.1`, ...headers], body));
/** Verifies as `name` with a challenge issued to `issuedTo`, or an invented one, signed by the registered agent. */
async function verify(name: string, issuedTo: string | null): Promise<TestResponse> {
  const { body } = await anonymous.post('/auth/challenge', { agent_name: issuedTo ?? name });
  const challenge_id = issuedTo === null ? randomUUID().replace(/^(.{14})./, '$18') : body.data.challenge_id;
  const signature = sign(null, Buffer.from(body.data.nonce, 'base64'), key).toString('base64');
  return anonymous.post('/auth/verify', { challenge_id, agent_name: name, signature });
}

const ROWS: readonly (readonly [claim: string, act: () => Promise<{ status: number }>, status: number])[] = [
  ['a request without a token', () => anonymous.get(`${CREDENTIALS}/jobs/key`), 401],
  ['a request with an invalid token', () => service.as('lhs_invalid').get(CREDENTIALS), 401],
  ['a malformed path, 400', () => agent.get(`${CREDENTIALS}/jobs//key`), 400],
  ['a malformed query, 400', () => agent.get(`${CREDENTIALS}/jobs/key?ttl=x`), 400],
  ['a malformed body of the administrator, 400', () => admin.post('/api/v1/agents', { nom: 'a' }), 400],
  ['two Authorization headers, 400', () => raw('GET', CREDENTIALS, ['Host: localhost', auth, auth]), 400],
  ['another method, 405', () => admin.call('PATCH', CREDENTIALS), 405],
  ['HEAD, 405', () => admin.call('HEAD', `${CREDENTIALS}/jobs/key`), 405],
  ['an address that does not exist, 404', () => admin.get('/api/v1/nothing'), 404],
  ['a body over the limit, 413', () => admin.post(CREDENTIALS, { path: 'a', value: 'v'.repeat(3_000_000) }), 413],
  [
    'another Content-Type, 415',
    () => raw('POST', CREDENTIALS, ['Host: localhost', auth, 'Content-Length: 2'], '{}'),
    415,
  ],
  ['another Host, 421', () => raw('GET', CREDENTIALS, ['Host: evil.example', auth]), 421],
  ['a verify that names an unknown agent', () => verify('unknown', 'unknown'), 401],
  ['a verify of an unknown name with an agent’s challenge', () => verify('unknown', 'worker'), 401],
  ['a verify of an agent with an unknown name’s challenge', () => verify('worker', 'unknown'), 401],
  ['a verify of an invented challenge', () => verify('worker', null), 401],
  ['a challenge', () => anonymous.post('/auth/challenge', { agent_name: 'worker' }), 200],
  ['simulate', () => admin.post('/api/v1/policies/simulate', { agent: 'a', resource: 'a', action: 'list' }), 200],
  ['a policy that does not exist', () => admin.get('/api/v1/policies/none'), 404],
  ['a panic about no agent', () => admin.get('/api/v1/panic?agent=none'), 404],
  ['an operator that does not exist', () => admin.get('/api/v1/operators/none'), 404],
  ['a verify that names an unknown operator', () => verify('operator:unknown', 'operator:unknown'), 401],
  ['a verify of an operator with an agent’s challenge', () => verify('operator:worker', 'worker'), 401],
  ['an operator’s code for a browser', () => watcher.post('/api/v1/auth/handoff'), 200],
  ['a browser of an operator', () => watcher.post('/api/v1/auth/browser'), 200],
  ['an invented code', () => anonymous.post('/api/v1/auth/handoff/redeem', { code: 'x' }), 401],
  ['an agent’s look at its approvals', () => agent.get('/api/v1/approvals'), 200],
  ['an approval that does not exist', () => admin.get(`/api/v1/approvals/${lease_id}`), 404],
];

/** The path parameters and the query of a read. */
const addressOf = (path: string): string =>
  path
    .replace('{name}', path.includes('operators') ? 'watcher' : path.includes('agents') ? 'worker' : 'p')
    .replace('{lease_id}', lease_id)
    .replace('{path}', 'jobs/key');
/** Reads that are recorded, and those that need an object of their own. */
const RECORDED = [
  '/api/v1/credentials',
  '/api/v1/credentials/{path}',
  '/api/v1/targets/{path}',
  '/api/v1/approvals/{approval_id}',
  '/api/v1/audit/entries/{seq}/proof',
  '/api/v1/audit/consistency',
  '/auth/session',
  '/api/v1/unlock',
];

test('requests that are not recorded', async () => {
  for (const [claim, act, status] of ROWS) {
    const entries = await auditEntriesOf(service, async () => assert.equal((await act()).status, status, claim));
    assert.deepEqual(entries, [], claim);
  }
});

test('reads but for those of credentials are not recorded', async () => {
  const reads = ROUTES.filter(({ method, path }) => method === 'GET' && !RECORDED.includes(path));
  assert.ok(reads.length > 25);
  const entries = await auditEntriesOf(service, async () => {
    for (const { path, query } of reads) {
      const needed = ['agent', 'q'].filter((name) => (query.required ?? []).includes(name));
      const words = needed.map((name) => `${name}=worker`).join('&');
      const { status, text } = await admin.get(`${addressOf(path)}?${words}`);
      assert.equal(status, 200, `${path}: ${text}`);
    }
  });
  assert.deepEqual(entries, []);
});

test('a request that cannot be recorded is 503 with Retry-After and not executed; health reports failing meanwhile', async (t) => {
  const other = await startTestService(t);
  const before = (await other.admin.get('/api/v1/audit')).body.meta.total;
  const lock = await lockDatabase(other.dataDir);
  assertRejected(await other.admin.post(CREDENTIALS, { path: 'a', value: 'v' }), 'UNAVAILABLE');
  const health = await other.anonymous.get('/api/v1/health');
  assert.deepEqual([health.status, health.body], [503, { data: { status: 'failing' } }]);
  await lock.release();
  assertRejected(await other.admin.get(`${CREDENTIALS}/a?view=metadata`), 'NOT_FOUND');
  assert.equal((await other.anonymous.get('/api/v1/health')).status, 200);
  assert.equal((await other.admin.get('/api/v1/audit')).body.meta.total, before + 1);
});
