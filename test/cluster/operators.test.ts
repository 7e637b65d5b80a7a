// An operator that one node adds, changes or removes is so on every node from its next request on.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createClient, logIn, verifyAs } from '../kit/client.ts';
import { startNodes } from '../kit/cluster.ts';
import { newDatabase } from '../kit/database.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import { scaled } from '../kit/scale.ts';
import { startTestClock } from '../kit/test-clock.ts';

const ROUNDS = scaled(2, 10);
const OPERATORS = '/api/v1/operators';
const KEY = '/api/v1/credentials/team/key';

const clock = startTestClock({ after });
const url = await newDatabase({ after });
await clock.follow(url);
const { nodes } = await startNodes({ after }, { nodes: 2, url });
const [one, two] = nodes;
assert.ok(one && two);
assert.equal((await one.admin.post('/api/v1/credentials', { path: 'team/key', value: 'v' })).status, 201);

/** An operator that the first node has added. */
async function added(name: string, roles: readonly string[], grants = {}) {
  assert.ok(one && two);
  const operator = await addOperator(one, name, roles, grants);
  return { ...operator, elsewhere: createClient(two.address, operator.token) };
}

test('an operator added on one node logs in on the other, and its session is valid on both', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const name = `added-${round}`;
    const { elsewhere, key } = await added(name, ['viewer']);
    assert.equal((await elsewhere.get('/api/v1/agents')).status, 200);
    const token = await logIn(two.address, `operator:${name}`, key.privateKey);
    assert.equal(
      (await createClient(one.address, token).get('/auth/session')).body.data.agent_name,
      `operator:${name}`,
    );
  }
});

test('roles and policies that one node changes hold on the other in the next request', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const name = `changed-${round}`;
    const { elsewhere } = await added(name, ['viewer'], { 'team/*': ['retrieve'] });
    assert.equal((await elsewhere.get(KEY)).status, 403);
    assert.equal((await one.admin.put(`${OPERATORS}/${name}`, { roles: ['editor'] })).status, 200);
    assert.equal((await elsewhere.get(KEY)).status, 200);
    assert.equal((await elsewhere.post('/api/v1/agents', { name: `by-${name}` })).status, 201);
    assert.equal((await one.admin.put(`${OPERATORS}/${name}`, { roles: ['approver'] })).status, 200);
    assert.equal((await elsewhere.get(KEY)).status, 403);
    assert.equal((await elsewhere.post('/api/v1/agents', { name: `by-${name}-2` })).status, 403);
  }
});

test('an operator that one node removes has neither session nor key on the other, and no lease', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const name = `removed-${round}`;
    const { elsewhere, key } = await added(name, ['editor'], { 'team/*': ['retrieve'] });
    const { lease_id } = (await elsewhere.get(KEY)).body.data;
    assert.equal((await one.admin.delete(`${OPERATORS}/${name}`)).status, 204);
    assert.equal((await elsewhere.get('/auth/session')).status, 401);
    assert.equal((await two.admin.get(`/api/v1/leases/${lease_id}`)).body.data.status, 'revoked');
    assert.equal((await verifyAs(two.address, `operator:${name}`, key.privateKey)).status, 401);
    // Added again under another spelling: the removal does not remove it.
    const again = { name: name.toUpperCase(), roles: ['viewer'], public_key: key.publicKey };
    assert.equal((await one.admin.post(OPERATORS, again)).status, 201);
    assert.equal((await verifyAs(two.address, `operator:${again.name}`, key.privateKey)).status, 200);
    assert.equal((await elsewhere.get('/auth/session')).status, 401);
  }
});

test('a key that one node rotates is the only one on the other, and earlier sessions have ended there', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const name = `rotated-${round}`;
    const { elsewhere, key } = await added(name, ['viewer']);
    assert.equal((await elsewhere.get('/auth/session')).status, 200);
    const next = newOperatorKey();
    const body = { public_key: next.publicKey };
    assert.equal((await one.admin.post(`${OPERATORS}/${name}/rotate`, body)).status, 200);
    assert.equal((await elsewhere.get('/auth/session')).status, 401);
    assert.equal((await verifyAs(two.address, `operator:${name}`, key.privateKey)).status, 401);
    assert.equal((await verifyAs(two.address, `operator:${name}`, next.privateKey)).status, 200);
  }
});

/** A session without the time until its end. */
const lasting = ({ expires_in: _, ...session }: Record<string, unknown>) => session;

test('a session that one node renews ends on the other at the same time, and one that it ends has ended there', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const operator = await added(`renewed-${round}`, ['viewer']);
    const before = (await operator.elsewhere.get('/auth/session')).body.data;
    // A session is renewed once a minute at most.
    await clock.move(60_000);
    const renewed = (await operator.post('/auth/session/renew')).body.data;
    assert.ok(renewed.expires_at > before.expires_at);
    assert.deepEqual(lasting((await operator.elsewhere.get('/auth/session')).body.data), lasting(renewed));
    const again = (await operator.elsewhere.post('/auth/session/renew')).body.data;
    assert.ok(again.expires_at >= renewed.expires_at);
    assert.deepEqual(lasting((await operator.get('/auth/session')).body.data), lasting(again));
    assert.equal((await operator.delete('/auth/session')).status, 204);
    assert.equal((await operator.elsewhere.get('/auth/session')).status, 401);
  }
});

test('concurrent removals on two nodes leave an operator with the role admin', async () => {
  await added('last-1', ['admin']);
  await added('last-2', ['admin']);
  const removals = [one.admin.delete(`${OPERATORS}/last-1`), two.admin.delete(`${OPERATORS}/last-2`)];
  assert.deepEqual((await Promise.all(removals)).map(({ status }) => status).sort(), [204, 400]);
});

test('both nodes agree on the log and on the state', async () => {
  for (const { admin } of nodes) {
    const { valid, state } = (await admin.get('/api/v1/audit/verify?state=true')).body.data;
    assert.deepEqual([valid, state.problems], [true, []]);
  }
});
