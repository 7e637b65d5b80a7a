// Access decisions, and how simulate explains them. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertRejected, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';
const SIMULATION = 'allowed policy_name lease_ttl reason';

const service = await startTestService({ after });
const { admin } = service;
const grant = async (name: string, principal: string, resources: string[], max_ttl: number, actions = ['retrieve']) => {
  const answer = await admin.post('/api/v1/policies', { name, principal, resources, actions, max_ttl });
  assert.equal(answer.status, 201, answer.text);
};
const simulate = async (agent: string, resource: string, action = 'retrieve') =>
  dataOf(await admin.post('/api/v1/policies/simulate', { agent, resource, action }), 200, SIMULATION);

test('the lease gets the max_ttl of the deciding policy, and simulate agrees', async () => {
  await admin.post(CREDENTIALS, { path: 'same/key', value: 'v' });
  const agent = await service.agent('same', { 'same/*': ['retrieve'] });
  await grant('same-short', 'agent:same', ['same/key'], 42);
  const { lease_id } = (await agent.get(`${CREDENTIALS}/same/key`)).body.data;
  const lease = (await agent.get(`/api/v1/leases/${lease_id}`)).body.data;
  const { policy_name, lease_ttl } = await simulate('same', 'same/key');
  assert.deepEqual([lease.policy_name, lease_ttl], ['same-short', 42]);
  assert.equal(policy_name, lease.policy_name);
  assert.equal(Date.parse(lease.expires_at) - Date.parse(lease.issued_at), 42_000);
});

test('without a grant a missing path and a forbidden one both return the same 403', async () => {
  await admin.post(CREDENTIALS, { path: 'secret/there', value: 'v' });
  const agent = await service.agent('outsider', { 'own/*': ['retrieve', 'list', 'delete', 'store'] });
  const answers = async (path: string) => [
    await agent.get(`${CREDENTIALS}/${path}`),
    await agent.get(`${CREDENTIALS}/${path}?version=3`),
    await agent.get(`${CREDENTIALS}/${path}?view=metadata`),
    await agent.delete(`${CREDENTIALS}/${path}`),
    await agent.call('POST', CREDENTIALS, { path, value: 'v' }, { 'if-none-match': '*' }),
  ];
  const there = await answers('secret/there');
  const missing = await answers('secret/missing');
  for (const [index, answer] of there.entries()) {
    assertRejected(answer, 'ACCESS_DENIED');
    assert.deepEqual(missing[index]?.body, answer.body);
    assert.deepEqual([...(missing[index]?.headers.keys() ?? [])], [...answer.headers.keys()]);
  }
});

test('an agent may simulate only for itself', async () => {
  const agent = await service.agent('curious', { 'curious/*': ['retrieve'] });
  const ask = (name: string) =>
    agent.post('/api/v1/policies/simulate', { agent: name, resource: 'curious/key', action: 'retrieve' });
  assert.equal(dataOf(await ask('curious'), 200, SIMULATION).allowed, true);
  for (const name of ['another', 'Curious']) assertRejected(await ask(name), 'ACCESS_DENIED');
});

test('simulate denies an unknown action', async () => {
  await grant('all-actions', 'agent:all', ['*'], 60, ['retrieve', 'list', 'store', 'delete']);
  for (const action of ['rotate', 'Retrieve', '', '*']) {
    const { allowed, reason } = await simulate('all', 'some/path', action);
    assert.equal(allowed, false, action);
    assert.match(reason, /^The action does not exist/);
  }
});
