// Operators: roles, names, keys, and their audit entries. SOURCE: docs/api.md, "Operators".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { readAgentKey, verifyAs } from '../kit/client.ts';
import { addOperator, newOperatorKey, type TestOperator } from '../kit/operators.ts';
import { assertInvalid, assertRejected, auditEntriesOf, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';
import { exchange, storeWithTargets } from '../kit/use.ts';

const CREDENTIALS = '/api/v1/credentials';
const OPERATORS = '/api/v1/operators';
const ALL = ['retrieve', 'use', 'list', 'store', 'delete'];
const FIELDS = 'name description roles public_key passkeys identity added_at';

const clock = startTestClock({ after });
const service = await startTestService({ after });
const { admin, address, dataDir } = service;
await admin.post(CREDENTIALS, { path: 'team/key', value: 'a value' });
await admin.post(CREDENTIALS, { path: 'other/key', value: 'another value' });

let made = 0;
const newName = () => `name-${++made}`;
const newBody = (name: string, roles: readonly string[] = ['viewer']) => ({
  name,
  roles,
  public_key: newOperatorKey().publicKey,
});
const statusOf = async (answer: Promise<{ status: number }>) => (await answer).status;
const retrieve = ({ get }: Pick<TestOperator, 'get'>, path = 'team/key') => get(`${CREDENTIALS}/${path}`);

test('a viewer and an approver see everything but values, whatever policies grant them', async () => {
  for (const role of ['viewer', 'approver']) {
    const operator = await addOperator(service, newName(), [role], { '*': ALL });
    for (const path of ['credentials', 'policies', 'agents', 'operators', 'leases', 'audit', 'key/slots']) {
      assert.equal(await statusOf(operator.get(`/api/v1/${path}`)), 200, path);
    }
    assert.equal(await statusOf(operator.get(`${CREDENTIALS}/other/key?view=metadata`)), 200);
    assertRejected(await retrieve(operator), 'ACCESS_DENIED');
    assertRejected(await operator.post(CREDENTIALS, { path: 'team/new', value: 'v' }), 'ACCESS_DENIED');
    assertRejected(await operator.post('/api/v1/agents', { name: newName() }), 'ACCESS_DENIED');
    assertRejected(await operator.post(OPERATORS, newBody(newName())), 'ACCESS_DENIED');
  }
});

test('an editor touches only credentials that policies grant it, and ends what one agent holds, not all', async () => {
  const editor = await addOperator(service, newName(), ['editor'], { 'team/*': ['store'] });
  const agent = await service.agent(newName(), { 'team/*': ['retrieve'] });
  const { agent_name } = (await agent.get('/auth/session')).body.data;
  const targets = { service: 'openai' };
  assert.equal(await statusOf(editor.post(CREDENTIALS, { path: 'team/mine', value: 'v' })), 201);
  assert.equal(await statusOf(editor.put('/api/v1/targets/team/mine', targets)), 200);
  assertRejected(await editor.post(CREDENTIALS, { path: 'other/mine', value: 'v' }), 'ACCESS_DENIED');
  assertRejected(await editor.put('/api/v1/targets/other/key', targets), 'ACCESS_DENIED');
  for (const path of ['team/mine', 'other/key', 'other/none'])
    assertRejected(await editor.delete(`${CREDENTIALS}/${path}`), 'ACCESS_DENIED');

  const viewer = await addOperator(service, newName(), ['viewer']);
  assertRejected(await viewer.post('/api/v1/panic', { agent: agent_name }), 'ACCESS_DENIED');
  assertRejected(await editor.post('/api/v1/panic', {}), 'ACCESS_DENIED');
  assert.equal((await retrieve(agent)).status, 200);
  assert.equal(await statusOf(editor.post('/api/v1/panic', { agent: agent_name })), 200);
  assertRejected(await retrieve(agent), 'UNAUTHENTICATED');
});

test('roles are a set in a fixed order, and a change holds from the next request on', async () => {
  const operator = await addOperator(service, newName(), ['editor', 'viewer', 'editor'], { 'team/*': ALL });
  const name = (await operator.get('/auth/session')).body.data.agent_name.slice('operator:'.length);
  const path = `${OPERATORS}/${name}`;
  assert.deepEqual(dataOf(await admin.get(path), 200, FIELDS).roles, ['viewer', 'editor']);
  assert.equal((await retrieve(operator)).status, 200);
  assert.deepEqual((await admin.put(path, { roles: ['approver'] })).body.data.roles, ['approver']);
  assertRejected(await retrieve(operator), 'ACCESS_DENIED');
  assert.deepEqual((await operator.get('/auth/session')).body.data.roles, ['approver']);
  assert.equal((await admin.put(path, { roles: ['editor'], description: 'x' })).body.data.description, 'x');
  assert.equal((await retrieve(operator)).status, 200);
  for (const roles of [[], ['boss'], ['Admin'], 'admin', [1]]) assertInvalid(await admin.put(path, { roles }), 'roles');
});

test('no two operators differ only in case, and names are case-sensitive', async () => {
  const name = newName();
  assert.equal(await statusOf(admin.post(OPERATORS, newBody(`${name}-Ann`))), 201);
  for (const taken of [`${name}-Ann`, `${name}-ann`, `${name}-ANN`]) {
    assertRejected(await admin.post(OPERATORS, newBody(taken)), 'ALREADY_EXISTS');
  }
  for (const call of [admin.get, admin.delete]) assertRejected(await call(`${OPERATORS}/${name}-ann`), 'NOT_FOUND');
  assertRejected(await admin.put(`${OPERATORS}/${name}-ann`, { roles: ['admin'] }), 'NOT_FOUND');
  assert.equal(await statusOf(admin.delete(`${OPERATORS}/${name}-Ann`)), 204);
  assert.equal(await statusOf(admin.post(OPERATORS, newBody(`${name}-ann`))), 201);
  for (const reserved of ['admin', 'Service', 'operator:x', '']) {
    assertInvalid(await admin.post(OPERATORS, newBody(reserved)), 'name');
  }
});

test('an operator and an agent of the same name have separate keys, policies, sessions and leases', async () => {
  const name = newName();
  const agent = await service.agent(name, { 'team/*': ['retrieve'] });
  const operator = await addOperator(service, name, ['editor']);
  assert.equal((await agent.get('/auth/session')).body.data.agent_name, name);
  assert.equal((await operator.get('/auth/session')).body.data.agent_name, `operator:${name}`);
  assertRejected(await retrieve(operator), 'ACCESS_DENIED');
  const agentKey = readAgentKey(dataDir, name);
  assertRejected(await verifyAs(address, `operator:${name}`, agentKey), 'AUTH_FAILED');
  assertRejected(await verifyAs(address, name, operator.key.privateKey), 'AUTH_FAILED');

  const everyAgent = { principal: 'agent:*', resources: ['*'], actions: ['retrieve'] };
  await admin.put('/api/v1/policies/every-agent', everyAgent);
  assertRejected(await retrieve(operator), 'ACCESS_DENIED');
  await admin.delete('/api/v1/policies/every-agent');
  await admin.put('/api/v1/policies/of-one', { ...everyAgent, principal: `operator:${name}`, resources: ['other/*'] });
  assertRejected(await agent.get(`${CREDENTIALS}/other/key`), 'ACCESS_DENIED');
  const { lease_id } = (await retrieve(operator, 'other/key')).body.data;

  assert.equal(await statusOf(admin.post('/api/v1/leases/revoke', { agent: name })), 200);
  assert.equal((await operator.get(`/api/v1/leases/${lease_id}`)).body.data.status, 'active');
  assert.equal(await statusOf(admin.post('/api/v1/panic', { agent: name })), 200);
  assert.equal(await statusOf(admin.delete(`/api/v1/agents/${name}`)), 204);
  assert.equal(await statusOf(operator.get('/auth/session')), 200);
  assert.equal((await operator.get(`/api/v1/leases/${lease_id}`)).body.data.status, 'active');
  assertRejected(await agent.get('/auth/session'), 'UNAUTHENTICATED');
  const revoked = await admin.post('/api/v1/leases/revoke', { agent: `operator:${name}` });
  assert.deepEqual(revoked.body.data, { revoked: 1 });
});

for (const how of ['rotation', 'removal']) {
  test(`the ${how} of an operator ends its sessions and leases immediately, and its previous key no longer logs in`, async () => {
    const name = newName();
    const operator = await addOperator(service, name, ['editor'], { 'team/*': ['retrieve'] });
    const second = service.as(await operator.enter());
    const { lease_id } = (await retrieve(operator)).body.data;
    const key = newOperatorKey();
    const path = `${OPERATORS}/${name}`;
    if (how === 'rotation') {
      const rotated = dataOf(await admin.post(`${path}/rotate`, { public_key: key.publicKey }), 200, FIELDS);
      assert.equal(rotated.public_key, key.publicKey);
    } else assert.equal(await statusOf(admin.delete(path)), 204);
    for (const client of [operator, second]) assertRejected(await client.get('/auth/session'), 'UNAUTHENTICATED');
    assertRejected(await retrieve(operator), 'UNAUTHENTICATED');
    assert.equal((await admin.get(`/api/v1/leases/${lease_id}`)).body.data.status, 'revoked');
    assertRejected(await verifyAs(address, `operator:${name}`, operator.key.privateKey), 'AUTH_FAILED');
    if (how === 'rotation') {
      assert.equal(await statusOf(verifyAs(address, `operator:${name}`, key.privateKey)), 200);
      return;
    }
    // Another operator of the name inherits the policies only.
    await admin.post(OPERATORS, { ...newBody(name, ['editor']), public_key: operator.key.publicKey });
    assertRejected(await operator.get('/auth/session'), 'UNAUTHENTICATED');
    assert.equal((await admin.get(`/api/v1/leases/${lease_id}`)).body.data.status, 'revoked');
  });
}

test('entries and leases name operator:NAME, and the filters of both lists find them', async () => {
  const name = newName();
  const principal = `operator:${name}`;
  const entries = await auditEntriesOf(service, async () => {
    const operator = await addOperator(service, name, ['editor'], { 'team/*': ['retrieve'] });
    await retrieve(operator);
    await retrieve(operator, 'other/key');
    // A session is renewed once a minute at most.
    await clock.move(60_000);
    await operator.post('/auth/session/renew');
    await admin.put(`${OPERATORS}/${name}`, { roles: ['viewer'] });
    await admin.post('/api/v1/leases/revoke', { agent: principal });
    await admin.post(`${OPERATORS}/${name}/rotate`, { public_key: operator.key.publicKey });
    await service.as(await operator.enter()).delete('/auth/session');
    await admin.delete(`${OPERATORS}/${name}`);
  });
  assert.deepEqual(
    entries.map((entry) => [entry.event_type, entry.agent_name, entry.resource, entry.result]),
    [
      ['operator.add', 'admin', principal, 'allowed'],
      ['policy.create', 'admin', `policy:of-${name}-0`, 'allowed'],
      ['auth.verify', principal, principal, 'allowed'],
      ['credential.retrieve', principal, 'team/key', 'allowed'],
      ['credential.retrieve', principal, 'other/key', 'denied'],
      ['session.renew', principal, principal, 'allowed'],
      ['operator.replace', 'admin', principal, 'allowed'],
      ['lease.revoke', 'admin', principal, 'allowed'],
      ['operator.rotate', 'admin', principal, 'allowed'],
      ['auth.verify', principal, principal, 'allowed'],
      ['session.end', principal, principal, 'allowed'],
      ['operator.remove', 'admin', principal, 'allowed'],
    ],
  );
  const denied = entries.find(({ result }) => result === 'denied');
  assert.equal(denied?.reason, 'no policy grants this operator the action on this path');
  const found = (await admin.get(`/api/v1/audit?agent=${principal}&order=asc`)).body;
  const own = entries.filter(({ agent_name }) => agent_name === principal);
  assert.deepEqual(
    found.data.map(({ seq }: { seq: number }) => seq),
    own.map(({ seq }) => seq),
  );
  assert.equal((await admin.get(`/api/v1/audit?agent=${name}`)).body.meta.total, 0);
  const [lease] = (await admin.get(`/api/v1/leases?agent=${principal}`)).body.data;
  assert.deepEqual([lease.agent_name, lease.path, lease.status], [principal, 'team/key', 'revoked']);
  const [exposed] = (await admin.get(`/api/v1/exposure?agent=${principal}`)).body.data;
  assert.equal(exposed.versions[0].seen_by[0].agent_name, principal);
});

test('neither a base URL nor a use lease is for operators, whatever their role', async (t) => {
  const upstream = await startUpstream(t, (_request, response) => response.end('reached'));
  await storeWithTargets(service, 'api/key', upstream);
  for (const role of ['editor', 'admin']) {
    const operator = await addOperator(service, newName(), [role], { 'api/*': ALL });
    const { response, text } = await exchange(address, '/use/api/key/-/a', {
      authorization: `Bearer ${operator.token}`,
    });
    await text();
    assert.equal(response.statusCode, 401);
    assertRejected(await operator.post('/api/v1/leases/use', { path: 'api/key' }), 'ACCESS_DENIED');
    const used = await operator.post('/api/v1/use', {
      path: 'api/key',
      method: 'GET',
      url: `https://127.0.0.1:${upstream.port}/a`,
    });
    assert.equal(used.status, role === 'admin' ? 200 : 403, used.text);
  }
});

test('without the role, no work of the server precedes the rejection', async () => {
  const viewer = await addOperator(service, newName(), ['viewer']);
  const slot = { name: newName(), kind: 'transit', key: 'a-key-that-does-not-exist' };
  assertRejected(await viewer.post('/api/v1/key/slots', slot), 'ACCESS_DENIED');
  const entries = await auditEntriesOf(service, async () => {
    assertRejected(await viewer.post('/api/v1/backup'), 'ACCESS_DENIED');
    assertRejected(await viewer.post('/api/v1/key/slots', slot), 'ACCESS_DENIED');
  });
  assert.deepEqual(
    entries.map(({ event_type }) => event_type),
    ['service.backup', 'key.slot_add'],
  );
});
