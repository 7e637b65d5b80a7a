// The limits of an editor's grants to agents. SOURCE: docs/api.md, "Operators".

import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import type { Client } from '../kit/client.ts';
import { addOperator } from '../kit/operators.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const POLICIES = '/api/v1/policies';
const AGENTS = '/api/v1/agents';

const service = await startTestService({ after });
const { admin } = service;
const editor = await addOperator(service, 'ed', ['editor'], { 'team/*': ['retrieve', 'store'], 'team/a': ['use'] });
const boss = await addOperator(service, 'boss', ['admin']);
// It grants only to operators whose names begin so.
await admin.put(`${POLICIES}/shared`, { principal: 'operator:e*', resources: ['shared/key'], actions: ['retrieve'] });
await admin.put(`${POLICIES}/no-one`, { principal: 'operator:x*', resources: ['*'], actions: ['retrieve'] });

let made = 0;
const newName = () => `name-${++made}`;
const statusOf = async (answer: Promise<{ status: number }>) => (await answer).status;

interface Grant {
  readonly principal?: string;
  readonly resources: readonly string[];
  readonly actions: readonly string[];
}
const create = (client: Client, { principal = 'agent:x', ...grant }: Grant, name = newName()) =>
  client.post(POLICIES, { name, principal, ...grant });
const replace = (client: Client, name: string, { principal = 'agent:x', ...grant }: Grant) =>
  client.put(`${POLICIES}/${name}`, { principal, ...grant });

const WITHIN: readonly Grant[] = [
  { resources: ['team/*'], actions: ['retrieve'] },
  { resources: ['team/*'], actions: ['store', 'retrieve'] },
  { resources: ['team/a/b/*', 'team/c'], actions: ['retrieve'] },
  { resources: ['team/a'], actions: ['retrieve', 'use'] },
  { resources: ['shared/key', 'team/*'], actions: ['retrieve'] },
  { principal: 'agent:*', resources: ['team/*'], actions: ['retrieve'] },
  { principal: 'agent:ci-*', resources: ['team/*'], actions: ['retrieve'] },
];
const BEYOND: readonly Grant[] = [
  { resources: ['*'], actions: ['retrieve'] },
  { resources: ['other/*'], actions: ['retrieve'] },
  { resources: ['team'], actions: ['retrieve'] },
  { resources: ['teams/a'], actions: ['retrieve'] },
  { resources: ['team/*', 'other/a'], actions: ['retrieve'] },
  { resources: ['team/*'], actions: ['delete'] },
  { resources: ['team/*'], actions: ['retrieve', 'list'] },
  { resources: ['team/*'], actions: ['use'] },
  { resources: ['team/b'], actions: ['use'] },
  { resources: ['team/a/*'], actions: ['use'] },
  { resources: ['shared/key'], actions: ['store'] },
  { resources: ['shared/*'], actions: ['retrieve'] },
  { resources: ['Team/a'], actions: ['retrieve'] },
];

beforeEach(async () => {
  for (const { name, principal } of (await admin.get(POLICIES)).body.data) {
    if (principal.startsWith('agent:')) await admin.delete(`${POLICIES}/${name}`);
  }
});

test('an editor creates, replaces and deletes policies within its reach', async () => {
  for (const grant of WITHIN) {
    const name = newName();
    assert.equal(await statusOf(create(editor, grant, name)), 201, JSON.stringify(grant));
    assert.equal(await statusOf(replace(editor, name, { resources: ['team/x'], actions: ['store'] })), 200);
    assert.equal(await statusOf(replace(editor, name, grant)), 200);
    assert.equal(await statusOf(editor.delete(`${POLICIES}/${name}`)), 204);
  }
});

test('an editor writes no policy beyond its reach, before or after', async () => {
  for (const grant of BEYOND) assertRejected(await create(editor, grant), 'ACCESS_DENIED');
  const [own, beyond] = [newName(), newName()];
  const within = { resources: ['team/x'], actions: ['retrieve'] };
  const grant = { resources: ['team/*', 'other/a'], actions: ['retrieve'] };
  await create(admin, within, own);
  await create(admin, grant, beyond);
  const before = (await admin.get(POLICIES)).body.data;
  const entries = await auditEntriesOf(service, async () => {
    assertRejected(await replace(editor, newName(), grant), 'ACCESS_DENIED');
    assertRejected(await replace(editor, own, grant), 'ACCESS_DENIED');
    assertRejected(await replace(editor, beyond, within), 'ACCESS_DENIED');
    assertRejected(await editor.delete(`${POLICIES}/${beyond}`), 'ACCESS_DENIED');
  });
  assert.deepEqual(
    entries.map(({ event_type, agent_name, result }) => [event_type, agent_name, result]),
    ['replace', 'replace', 'replace', 'delete'].map((verb) => [`policy.${verb}`, 'operator:ed', 'denied']),
  );
  assert.deepEqual((await admin.get(POLICIES)).body.data, before);
  assert.equal(await statusOf(replace(boss, own, grant)), 200);
});

test('only an operator with the role admin writes policies for operators', async () => {
  const within = { resources: ['team/x'], actions: ['retrieve'] };
  for (const principal of ['operator:ed', 'operator:other', 'operator:*', 'operator:e*']) {
    const [own, ofOperator] = [newName(), newName()];
    assert.equal(await statusOf(create(boss, { ...within, principal }, ofOperator)), 201);
    await create(admin, within, own);
    assertRejected(await create(editor, { ...within, principal }), 'ACCESS_DENIED');
    assertRejected(await replace(editor, own, { ...within, principal }), 'ACCESS_DENIED');
    assertRejected(await replace(editor, ofOperator, within), 'ACCESS_DENIED');
    assertRejected(await editor.delete(`${POLICIES}/${ofOperator}`), 'ACCESS_DENIED');
    assert.equal(await statusOf(boss.delete(`${POLICIES}/${ofOperator}`)), 204);
  }
});

test('an editor with every action on * may write every policy for agents; without policies none', async () => {
  const actions = ['retrieve', 'use', 'list', 'store', 'delete'];
  const wide = await addOperator(service, newName(), ['editor'], { '*': actions });
  const none = await addOperator(service, newName(), ['editor']);
  for (const grant of BEYOND) assert.equal(await statusOf(create(wide, grant)), 201);
  for (const grant of WITHIN) assertRejected(await create(none, grant), 'ACCESS_DENIED');
  assertRejected(await create(wide, { principal: 'operator:x', resources: ['a'], actions: ['list'] }), 'ACCESS_DENIED');
});

test('the reach follows the policies from the next request on', async () => {
  const name = newName();
  const operator = await addOperator(service, name, ['editor'], { 'mine/*': ['retrieve'] });
  const grant = { resources: ['mine/*'], actions: ['retrieve'] };
  assert.equal(await statusOf(create(operator, grant)), 201);
  const own = `${POLICIES}/of-${name}-0`;
  await admin.put(own, { principal: `operator:${name}`, resources: ['mine/a/*'], actions: ['retrieve'] });
  assertRejected(await create(operator, grant), 'ACCESS_DENIED');
  assert.equal(await statusOf(create(operator, { ...grant, resources: ['mine/a/b'] })), 201);
  await admin.delete(own);
  assertRejected(await create(operator, { ...grant, resources: ['mine/a/b'] }), 'ACCESS_DENIED');
});

test('a policy that does not exist is 404 for an editor, whatever its name', async () => {
  assertRejected(await editor.delete(`${POLICIES}/none`), 'NOT_FOUND');
});

/** Statuses of a registration, a rotation and a deregistration, of which the first and the last are done. */
async function tryAgent(name: string): Promise<readonly number[]> {
  const registered = await statusOf(editor.post(AGENTS, { name }));
  if (registered === 403) await admin.post(AGENTS, { name });
  const rotated = await statusOf(editor.post(`${AGENTS}/${name}/rotate`, { grace_seconds: 0 }));
  const removed = await statusOf(editor.delete(`${AGENTS}/${name}`));
  if (removed === 403) await admin.delete(`${AGENTS}/${name}`);
  return [registered, rotated, removed];
}
const ALLOWED = [201, 200, 204];
const DENIED = [403, 403, 403];

test('an editor gives keys only to agents whose policies are all within its reach', async () => {
  assert.deepEqual(await tryAgent('free'), ALLOWED);
  await create(admin, { principal: 'agent:within', resources: ['team/*'], actions: ['retrieve'] });
  assert.deepEqual(await tryAgent('within'), ALLOWED);
  await create(admin, { principal: 'agent:kept', resources: ['team/*', 'other/a'], actions: ['retrieve'] });
  assert.deepEqual(await tryAgent('kept'), DENIED);
  // Policies are case-sensitive.
  assert.deepEqual(await tryAgent('Kept'), ALLOWED);
  assert.deepEqual(await tryAgent('kept-not'), ALLOWED);
  await create(admin, { principal: 'agent:within', resources: ['team/*'], actions: ['delete'] });
  assert.deepEqual(await tryAgent('within'), DENIED);
});

test('policies for agents by prefix and for every agent count too', async () => {
  await create(admin, { principal: 'agent:pre*', resources: ['other/a'], actions: ['list'] });
  assert.deepEqual(await tryAgent('pre-1'), DENIED);
  assert.deepEqual(await tryAgent('pre'), DENIED);
  assert.deepEqual(await tryAgent('pr'), ALLOWED);
  await create(admin, { principal: 'agent:*', resources: ['team/*'], actions: ['retrieve'] });
  assert.deepEqual(await tryAgent('pr'), ALLOWED);
  await create(admin, { principal: 'agent:*', resources: ['*'], actions: ['list'] });
  assert.deepEqual(await tryAgent('pr'), DENIED);
});

test('a denied registration or rotation leaves no key', async () => {
  await create(admin, { principal: 'agent:locked', resources: ['other/*'], actions: ['retrieve'] });
  assertRejected(await editor.post(AGENTS, { name: 'locked' }), 'ACCESS_DENIED');
  assertRejected(await admin.get(`${AGENTS}/locked`), 'NOT_FOUND');
  const { public_key: before } = (await admin.post(AGENTS, { name: 'locked' })).body.data;
  assertRejected(await editor.post(`${AGENTS}/locked/rotate`, {}), 'ACCESS_DENIED');
  assert.equal((await admin.get(`${AGENTS}/locked`)).body.data.public_key, before);
});

const inFuture = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();

test('a policy of an editor does not outlast the policy from which it has the access', async () => {
  const name = newName();
  const operator = await addOperator(service, name, ['editor']);
  const own = { name: newName(), principal: `operator:${name}`, resources: ['brief/*'], actions: ['retrieve'] };
  const [soon, later] = [inFuture(10), inFuture(20)];
  await admin.post(POLICIES, { ...own, expires_at: soon });
  const grant = { principal: 'agent:x', resources: ['brief/*'], actions: ['retrieve'] };
  const write = (expiry: object) => operator.post(POLICIES, { name: newName(), ...grant, ...expiry });
  assertRejected(await write({}), 'ACCESS_DENIED');
  assertRejected(await write({ expires_at: later }), 'ACCESS_DENIED');
  assert.equal(await statusOf(write({ expires_at: soon })), 201);
});

test('an editor sheds no demand for an approval by one that expires before the grant', async () => {
  const name = newName();
  const operator = await addOperator(service, name, ['editor']);
  const approval = { for: 'retrieve' };
  const grant = { principal: 'agent:x', resources: ['asked/*'], actions: ['retrieve'] };
  await admin.post(POLICIES, { name: newName(), ...grant, principal: `operator:${name}`, approval });
  const write = (more: object) => operator.post(POLICIES, { name: newName(), ...grant, ...more });
  const [soon, later] = [inFuture(10), inFuture(20)];
  assert.equal(await statusOf(write({ approval, expires_at: soon })), 201);
  assertRejected(await write({}), 'ACCESS_DENIED');
  assertRejected(await write({ expires_at: later }), 'ACCESS_DENIED');
  assert.equal(await statusOf(write({ expires_at: soon })), 201);
  assert.equal(await statusOf(write({ approval })), 201);
});
