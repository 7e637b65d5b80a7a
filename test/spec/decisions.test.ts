// Access decisions, and how simulate explains them. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertRejected, auditEntriesOf, dataOf } from '../kit/responses.ts';
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

test('an agent without a policy is denied by default', async () => {
  await admin.post(CREDENTIALS, { path: 'default/key', value: 'v' });
  const agent = await service.agent('by-default');
  assertRejected(await agent.get(`${CREDENTIALS}/default/key`), 'ACCESS_DENIED');
});

test('prefix/* matches everything below prefix/ at any depth, but not prefix itself', async () => {
  await grant('below', 'agent:below', ['tree/*'], 60);
  for (const path of ['tree/a', 'tree/a/b/c', 'tree/.x'])
    assert.equal((await simulate('below', path)).allowed, true, path);
  for (const path of ['tree', 'treee/a', 'tre/a', 'Tree/a', 'a/tree/a', 'tree0']) {
    assert.equal((await simulate('below', path)).allowed, false, path);
  }
});

test('an exact path matches only itself, and * matches every path', async () => {
  await grant('exact', 'agent:exact', ['tree/a'], 60);
  await grant('every', 'agent:every', ['*'], 60);
  for (const path of ['tree/a', 'tree/a/b', 'tree/ab', 'tree', 'Tree/a']) {
    assert.equal((await simulate('exact', path)).allowed, path === 'tree/a', path);
    assert.equal((await simulate('every', path)).allowed, true, path);
  }
});

test('a principal with a trailing * matches agents by prefix, case-sensitively', async () => {
  await grant('stem', 'agent:ci-*', ['stem/*'], 60);
  await grant('anybody', 'agent:*', ['anybody/*'], 60);
  for (const [name, isNamed] of Object.entries({
    'ci-1': true,
    'ci-': true,
    ci: false,
    'CI-1': false,
    'xci-1': false,
  })) {
    assert.equal((await simulate(name, 'stem/key')).allowed, isNamed, name);
    assert.equal((await simulate(name, 'anybody/key')).allowed, true, name);
  }
  await admin.delete('/api/v1/policies/anybody');
});

test('a policy grants only its own actions', async () => {
  await grant('two-actions', 'agent:two-actions', ['actions/*'], 60, ['list', 'store']);
  for (const [action, isGranted] of Object.entries({ list: true, store: true, retrieve: false, delete: false })) {
    assert.equal((await simulate('two-actions', 'actions/key', action)).allowed, isGranted, action);
  }
});

test('of all matching policies the one with the smallest max_ttl decides', async () => {
  await grant('wide', 'agent:*', ['*'], 900);
  await grant('narrow', 'agent:restricted', ['restricted/key'], 600);
  await grant('short', 'agent:restr*', ['restricted/*'], 30);
  await grant('elsewhere', 'agent:restricted', ['other/*'], 5);
  await grant('another-action', 'agent:restricted', ['restricted/*'], 5, ['list']);
  const { allowed, policy_name, lease_ttl } = await simulate('restricted', 'restricted/key');
  assert.deepEqual({ allowed, policy_name, lease_ttl }, { allowed: true, policy_name: 'short', lease_ttl: 30 });
  await admin.delete('/api/v1/policies/short');
  assert.equal((await simulate('restricted', 'restricted/key')).policy_name, 'narrow');
  await admin.delete('/api/v1/policies/narrow');
  assert.equal((await simulate('restricted', 'restricted/key')).policy_name, 'wide');
  await admin.delete('/api/v1/policies/wide');
});

test('of policies with equal max_ttl the first by name decides, regardless of creation order', async () => {
  for (const name of ['tie-c', 'tie-a', 'tie-b']) await grant(name, 'agent:tied', ['tied/*'], 60);
  assert.equal((await simulate('tied', 'tied/key')).policy_name, 'tie-a');
  await grant('Tie-z', 'agent:tied', ['tied/*'], 60);
  assert.equal((await simulate('tied', 'tied/key')).policy_name, 'Tie-z');
});

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

test('a caller with a grant on a missing path gets 404', async () => {
  const agent = await service.agent('insider', { 'own/*': ['retrieve', 'list', 'delete'] });
  assertRejected(await agent.get(`${CREDENTIALS}/own/missing`), 'NOT_FOUND');
  assertRejected(await agent.get(`${CREDENTIALS}/own/missing?view=metadata`), 'NOT_FOUND');
  assertRejected(await agent.delete(`${CREDENTIALS}/own/missing`), 'NOT_FOUND');
});

test('simulate ignores whether the agent is registered and the path exists', async () => {
  await grant('future', 'agent:not-yet', ['not/yet'], 60);
  const { allowed, policy_name, lease_ttl, reason } = await simulate('not-yet', 'not/yet');
  assert.deepEqual({ allowed, policy_name, lease_ttl }, { allowed: true, policy_name: 'future', lease_ttl: 60 });
  assert.match(reason, /The agent is not registered\.$/);
});

test('simulate changes nothing and is not recorded', async () => {
  await admin.post(CREDENTIALS, { path: 'untouched/key', value: 'v' });
  const agent = await service.agent('untouched', { 'untouched/*': ['retrieve'] });
  const entries = await auditEntriesOf(service, async () => {
    await simulate('untouched', 'untouched/key');
    await simulate('untouched', 'elsewhere');
    await agent.post('/api/v1/policies/simulate', { agent: 'untouched', resource: 'elsewhere', action: 'store' });
  });
  assert.deepEqual(entries, []);
  assert.deepEqual((await agent.get('/api/v1/leases')).body.data, []);
  assert.equal((await admin.get(`${CREDENTIALS}/untouched/key?view=metadata`)).body.data.access_count, 0);
});

test('an agent may simulate only for itself', async () => {
  const agent = await service.agent('curious', { 'curious/*': ['retrieve'] });
  const ask = (name: string) =>
    agent.post('/api/v1/policies/simulate', { agent: name, resource: 'curious/key', action: 'retrieve' });
  assert.equal(dataOf(await ask('curious'), 200, SIMULATION).allowed, true);
  for (const name of ['another', 'Curious']) assertRejected(await ask(name), 'ACCESS_DENIED');
});

test('a denied simulation has null for policy_name and lease_ttl', async () => {
  const { allowed, policy_name, lease_ttl } = await simulate('nobody', 'some/path');
  assert.deepEqual({ allowed, policy_name, lease_ttl }, { allowed: false, policy_name: null, lease_ttl: null });
});

test('the reason is a sentence that names the deciding rule', async () => {
  await service.agent('reasoned', { 'reason/prod/*': ['retrieve'], 'reason/dev/key': ['retrieve'] });
  const reason = async (agent: string, resource: string, action?: string) =>
    (await simulate(agent, resource, action)).reason;
  assert.match(
    await reason('reasoned', 'reason/prod/a'),
    /^Policy reasoned-0 grants retrieve on reason\/prod\/\*.*\.$/,
  );
  assert.match(
    await reason('unnamed', 'reason/prod/a'),
    /^No policy names this agent\. The agent is not registered\.$/,
  );
  assert.match(await reason('reasoned', 'reason/prod/a', 'store'), /^No policy grants this agent the action\.$/);
  assert.match(await reason('reasoned', 'reason/dev/kex'), /on this path; the nearest pattern is reason\/dev\/key\.$/);
  assert.match(await reason('reasoned', 'reason/prodder'), /on this path; the nearest pattern is reason\/prod\/\*\.$/);
});

test('simulate denies an unknown action', async () => {
  await grant('all-actions', 'agent:all', ['*'], 60, ['retrieve', 'list', 'store', 'delete']);
  for (const action of ['rotate', 'Retrieve', '', '*']) {
    const { allowed, reason } = await simulate('all', 'some/path', action);
    assert.equal(allowed, false, action);
    assert.match(reason, /^The action does not exist/);
  }
});
