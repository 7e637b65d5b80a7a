// What the audit log does not record, so that unauthenticated callers cannot grow it. SOURCE: docs/decisions.md, "The
// audit log".

import assert from 'node:assert/strict';
import { randomUUID, sign } from 'node:crypto';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { readAgentKey, type TestResponse } from '../kit/client.ts';
import { lockDatabase } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { addOperator } from '../kit/operators.ts';
import { startProcess } from '../kit/process.ts';
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
  ['the administrator’s look at the policies', () => admin.get('/api/v1/policies'), 200],
  ['at a policy', () => admin.get('/api/v1/policies/p'), 200],
  ['at a policy that is not there', () => admin.get('/api/v1/policies/none'), 404],
  ['at the agents', () => admin.get('/api/v1/agents'), 200],
  ['at an agent', () => admin.get('/api/v1/agents/worker'), 200],
  ['at what a panic would end', () => admin.get('/api/v1/panic'), 200],
  ['at what a panic about no agent would end', () => admin.get('/api/v1/panic?agent=none'), 404],
  ['at the operators', () => admin.get('/api/v1/operators'), 200],
  ['at an operator', () => admin.get('/api/v1/operators/watcher'), 200],
  ['at an operator that is not there', () => admin.get('/api/v1/operators/none'), 404],
  ['an operator’s look at the agents', () => watcher.get('/api/v1/agents'), 200],
  ['an operator’s look at its session', () => watcher.get('/auth/session'), 200],
  ['a verify that names an unknown operator', () => verify('operator:unknown', 'operator:unknown'), 401],
  ['a verify of an operator with an agent’s challenge', () => verify('operator:worker', 'worker'), 401],
  ['how to sign in', () => anonymous.get('/api/v1/auth/methods'), 200],
  ['an operator’s code for a browser', () => watcher.post('/api/v1/auth/handoff'), 200],
  ['a browser of an operator', () => watcher.post('/api/v1/auth/browser'), 200],
  ['an invented code', () => anonymous.post('/api/v1/auth/handoff/redeem', { code: 'x' }), 401],
  ['at the approvals', () => admin.get('/api/v1/approvals'), 200],
  ['an agent’s look at its approvals', () => agent.get('/api/v1/approvals'), 200],
  ['at an approval that is not there', () => admin.get(`/api/v1/approvals/${lease_id}`), 404],
  ['at the leases', () => admin.get('/api/v1/leases'), 200],
  ['at a lease', () => admin.get(`/api/v1/leases/${lease_id}`), 200],
  ['at the log', () => admin.get('/api/v1/audit?agent=worker'), 200],
  ['at the log’s verification', () => admin.get('/api/v1/audit/verify'), 200],
  ['at how far that is', () => admin.get('/api/v1/audit/verify/progress'), 200],
  ['at what it has lost', () => admin.get('/api/v1/audit/rollback'), 200],
  ['at the matrix', () => admin.get('/api/v1/matrix'), 200],
  ['at the tree', () => watcher.get('/api/v1/tree'), 200],
  ['a search', () => watcher.get('/api/v1/search?q=jobs'), 200],
  ['at what needs attention', () => watcher.get('/api/v1/attention'), 200],
  ['at the activity', () => watcher.get('/api/v1/activity'), 200],
  ['at the nodes', () => watcher.get('/api/v1/nodes'), 200],
  ['at the log’s export', () => admin.get('/api/v1/audit/export'), 200],
  ['health', () => anonymous.get('/api/v1/health'), 200],
  ['the OpenAPI document', () => anonymous.get('/openapi.json'), 200],
];

suite('not recorded', () => {
  for (const [claim, act, status] of ROWS) {
    test(`not recorded: ${claim}`, async () => {
      const entries = await auditEntriesOf(service, async () => assert.equal((await act()).status, status));
      assert.deepEqual(entries, []);
    });
  }
});

test('not recorded: 429', async (t) => {
  const other = await startTestService(t);
  const { body } = await other.anonymous.post('/auth/challenge', { agent_name: 'guessed' });
  const proof = { challenge_id: body.data.challenge_id, agent_name: 'guessed', signature: 'AAAA' };
  const entries = await auditEntriesOf(other, async () => {
    const answers = await Promise.all(Array.from({ length: 90 }, () => other.anonymous.post('/auth/verify', proof)));
    assert.equal(
      answers.some(({ status }) => status === 429),
      true,
    );
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

test('unrecorded rejections are logged with code, status and request id, and without request data', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const other = await startProcess(t, directory, ['--log-level', 'info']);
  const answer = await fetch(`${other.address}${CREDENTIALS}/a-path-that-was-sent`, {
    headers: { authorization: 'Bearer a-token-that-was-sent' },
  });
  assert.equal(answer.status, 401);
  await other.end('SIGTERM');
  const line = other
    .output()
    .split('\n')
    .find((text) => text.includes('"UNAUTHENTICATED"'));
  const { code, status, request_id, method, remote_addr } = JSON.parse(line ?? '{}');
  assert.deepEqual(
    { code, status, request_id, method, remote_addr },
    {
      code: 'UNAUTHENTICATED',
      status: 401,
      request_id: answer.headers.get('x-request-id'),
      method: 'GET',
      remote_addr: '127.0.0.1',
    },
  );
  assert.equal(other.output().includes('that-was-sent'), false);
});
