// What an agent under injected instructions, or an operator, may try against approvals: none makes more pass than a
// person has seen and approved. SOURCE: SECURITY.md, P17; docs/approvals.md.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, createClient, logIn, readAgentKey } from '../kit/client.ts';
import { demandApproval, findPending } from '../kit/held.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import { assertInvalid, assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { targetOf } from '../kit/use.ts';
import { APPROVALS, type Sent, startApprovals } from './approval-scene.ts';

const scene = await startApprovals({ after });
const { service, upstream, ann, ben, newAgent, send, approve, assertHeld } = scene;
const { admin, address, dataDir } = service;
type Agent = Awaited<ReturnType<typeof newAgent>>;

const CHANGED: Readonly<Record<string, Sent>> = {
  'another body': { body: 'pay 9' },
  'a longer body': { body: 'pay 1 ' },
  'another method': { body: 'pay 1', method: 'PUT' },
  HEAD: { method: 'HEAD' },
  'a query': { body: 'pay 1', target: '/v1/pay?to=me' },
  'another path': { body: 'pay 1', target: '/v1/pay/all' },
  'another case of the path': { body: 'pay 1', target: '/v1/Pay' },
  'an encoded path': { body: 'pay 1', target: '/v1/p%61y' },
  'another content type': { body: 'pay 1', headers: { 'content-type': 'application/json' } },
  'a content encoding': { body: 'pay 1', headers: { 'content-encoding': 'br' } },
  'a header that Connection removes': { body: 'pay 1', headers: { connection: 'content-type' } },
  'an Accept-* or Sec-* header of unknown effect': { body: 'pay 1', headers: { 'sec-mode': 'live' } },
};

test('a request that differs from the approved one is held, and the approved one passes once', async () => {
  const agent = await newAgent();
  await assertHeld(send(agent, { body: 'pay 1' }));
  await approve(agent.path);
  const before = upstream.requests.length;
  for (const sent of Object.values(CHANGED)) {
    const { status } = await send(agent, sent);
    assert.equal(status, 503, JSON.stringify(sent));
  }
  assert.equal(upstream.requests.length, before, 'nothing was sent');
  // The calls are sent in parallel, some with another framing of the same bytes.
  const same = Array.from({ length: 8 }, (_, n) =>
    send(agent, { body: 'pay 1', headers: n % 2 === 0 ? {} : { 'transfer-encoding': 'chunked' } }),
  );
  const statuses = (await Promise.all(same)).map(({ status }) => status);
  assert.deepEqual(statuses.toSorted(), [200, ...Array(7).fill(503)]);
  assert.equal(upstream.requests.length, before + 1);
});

test('a body that an encoding may read as another one is not shown as text', async () => {
  const agent = await newAgent();
  await assertHeld(send(agent, { body: 'looks harmless', headers: { 'content-encoding': 'br' } }));
  const { approval_id } = await findPending(admin, agent.path);
  const { request } = (await ann.get(`${APPROVALS}/${approval_id}`)).body.data;
  assert.deepEqual([request.body_encoding, request.body], ['base64', Buffer.from('looks harmless').toString('base64')]);
});

test('an approval for a session counts neither in another session, nor for the token of a lease', async () => {
  const agent = await newAgent({ each: 'host', scope: 'session' });
  const targets = { service: 'openai', targets: [targetOf(upstream)], placement: { kind: 'bearer' } };
  assert.equal((await admin.put(`/api/v1/targets/${agent.path}`, targets)).status, 200);
  await assertHeld(send(agent, { body: '1' }));
  await approve(agent.path);
  assert.equal((await send(agent, { body: '2' })).status, 200);
  const other = await logIn(address, agent.name, readAgentKey(dataDir, agent.name));
  await assertHeld(send({ ...agent, token: other }, { body: '2' }));
  const lease = await agent.client.post('/api/v1/leases/use', { path: agent.path, ttl: 60 });
  assert.equal(lease.status, 201, lease.text);
  await assertHeld(send({ ...agent, token: lease.body.data.token }, { body: '2' }));
  assert.equal((await send(agent, { body: '3' })).status, 200);
});

test('an agent that is registered again under the name inherits no approval', async () => {
  const agent = await newAgent({ each: 'host', scope: '9 uses' });
  await assertHeld(send(agent));
  const id = await approve(agent.path);
  assert.equal((await admin.delete(`/api/v1/agents/${agent.name}`)).status, 204);
  assert.equal((await admin.post('/api/v1/agents', { name: agent.name })).status, 201);
  const token = await logIn(address, agent.name, readAgentKey(dataDir, agent.name));
  await assertHeld(send({ ...agent, token }));
  assertRejected(await createClient(address, token).get(`${APPROVALS}/${id}`), 'NOT_FOUND');
});

test('another agent sees, answers and withdraws nothing, and an unknown id looks like it', async () => {
  const [agent, other] = [await newAgent(), await newAgent()];
  await assertHeld(send(agent));
  const { approval_id, nonce } = await findPending(admin, agent.path);
  const unknown = approval_id.replace(/.{4}$/, (end) => (end === '0000' ? '0001' : '0000'));
  for (const id of [approval_id, unknown]) {
    assertRejected(await other.client.get(`${APPROVALS}/${id}`), 'NOT_FOUND');
    assertRejected(await other.client.delete(`${APPROVALS}/${id}`), 'NOT_FOUND');
    for (const { client } of [agent, other]) {
      assertRejected(await client.post(`${APPROVALS}/${id}/approve`, { nonce }), 'ACCESS_DENIED');
    }
  }
  assert.deepEqual((await other.client.get(`${APPROVALS}?agent=${agent.name}`)).body.data, []);
});

test('an approved retrieval is of the version that was asked for, however long its lease', async () => {
  const agent = await newAgent();
  const path = `kept/${agent.name}`;
  for (const value of ['one', 'two']) await admin.post('/api/v1/credentials', { path, value });
  await demandApproval(service, agent.name, [path]);
  const get = (query = '') => agent.client.get(`/api/v1/credentials/${path}${query}`);
  assertRejected(await get(), 'APPROVAL_PENDING');
  await approve(path);
  assertRejected(await get('?version=1'), 'APPROVAL_PENDING');
  const { purpose, covers } = (await admin.get(`${APPROVALS}?agent=${agent.name}&limit=1`)).body.data[0];
  assert.equal(purpose, 'version 1');
  assert.match(covers, /, version 1,/);
  assert.equal((await agent.client.call('HEAD', `/api/v1/credentials/${path}`)).status, 405);
  assertRejected(await get('?view=metadata'), 'ACCESS_DENIED');
  const { lease_id, value } = (await get('?ttl=5')).body.data;
  assert.equal(value, 'two');
  // A renewed lease returns no value.
  const renewed = await agent.client.post(`/api/v1/leases/${lease_id}/renew`);
  assert.equal('value' in (renewed.body.data ?? {}), false);
  assertRejected(await get('?ttl=5'), 'APPROVAL_PENDING');
});

test('an operator cannot answer with the nonce of another approval, twice, or after it lost the role', async () => {
  const [agent, other] = [await newAgent({ quorum: 2 }), await newAgent()];
  await Promise.all([assertHeld(send(agent)), assertHeld(send(other))]);
  const { approval_id, nonce } = await findPending(admin, agent.path);
  const answer = (by: Client, given: string) => by.post(`${APPROVALS}/${approval_id}/approve`, { nonce: given });
  const entries = await auditEntriesOf(service, async () => {
    assertInvalid(await answer(ben, (await findPending(admin, other.path)).nonce), 'nonce');
    assert.equal((await answer(ben, nonce)).body.data.status, 'pending');
    assertRejected(await answer(ben, nonce), 'ALREADY_EXISTS');
  });
  const results = entries.filter(({ event_type }) => event_type === 'approval.approve').map(({ result }) => result);
  assert.deepEqual(results, ['denied', 'allowed', 'denied']);
  const carl = await addOperator(service, 'carl', ['approver']);
  assert.equal((await carl.get(`${APPROVALS}/${approval_id}`)).status, 200);
  assert.equal((await admin.put('/api/v1/operators/carl', { roles: ['viewer'] })).status, 200);
  assertRejected(await answer(carl, nonce), 'ACCESS_DENIED');
  await assertHeld(send(agent));
});

test('where two must agree, neither the agent’s own operator nor the administrator’s token is one of them', async () => {
  const dora = await addOperator(service, 'dora', ['approver']);
  const agent = await newAgent({ quorum: 2 }, ann);
  const held = assertHeld(send(agent));
  const { approval_id, nonce } = await findPending(admin, agent.path);
  const answer = (by: Client) => by.post(`${APPROVALS}/${approval_id}/approve`, { nonce });
  assertRejected(await answer(ann), 'ACCESS_DENIED');
  assertRejected(await answer(admin), 'ACCESS_DENIED');
  // The key stays the one that ann knows.
  const { public_key } = (await admin.get(`/api/v1/agents/${agent.name}`)).body.data;
  assert.equal((await admin.post(`/api/v1/agents/${agent.name}/rotate`, { public_key })).status, 200);
  assertRejected(await answer(ann), 'ACCESS_DENIED');
  assert.equal((await answer(ben)).status, 200);
  await held;
  assert.equal((await answer(dora)).body.data.status, 'approved');
  assert.equal((await send(agent)).status, 200);
});

test('where fewer operators than the quorum could answer, none is asked', async () => {
  const agent = await newAgent({ quorum: 10 });
  const { status, code } = await send(agent);
  assert.deepEqual([status, code], [403, 'NO_APPROVER']);
});

const VOIDING: Readonly<Record<string, (agent: Agent) => Promise<{ status: number }>>> = {
  'its targets changed': ({ path }) =>
    admin.put(`/api/v1/targets/${path}`, {
      targets: [targetOf(upstream, { paths: ['/v1/*'] })],
      placement: { kind: 'bearer' },
    }),
  'a policy changed': async ({ name, path }) => {
    await demandApproval(service, name, [path, 'another'], { for: 'use', each: 'host', scope: '9 uses' });
    return { status: 200 };
  },
  'the agent got another key': ({ name }) =>
    admin.post(`/api/v1/agents/${name}/rotate`, { public_key: newOperatorKey().publicKey, grace_seconds: 60 }),
};
for (const [change, make] of Object.entries(VOIDING)) {
  test(`a grant and a request that waits end when ${change}`, async () => {
    const agent = await newAgent({ each: 'host', scope: '9 uses' });
    await assertHeld(send(agent));
    await approve(agent.path);
    assert.equal((await send(agent)).status, 200);
    assert.ok((await make(agent)).status < 300);
    await assertHeld(send(agent));
  });
}

test('a policy that is replaced by an equal one voids nothing', async () => {
  const rule = { for: 'use', each: 'host', scope: '9 uses' };
  const agent = await newAgent(rule);
  await assertHeld(send(agent));
  await demandApproval(service, agent.name, [agent.path], rule);
  await sleep(20);
  await approve(agent.path);
  await demandApproval(service, agent.name, [agent.path], rule);
  assert.equal((await send(agent)).status, 200);
});

test('a denial holds against the same request, and its reason reaches the agent as text', async () => {
  const agent = await newAgent({ each: 'endpoint', scope: '2 uses' });
  await assertHeld(send(agent));
  const { approval_id, nonce } = await findPending(admin, agent.path);
  const reason = 'no "money" \\ 𝄞';
  assert.equal((await ben.post(`${APPROVALS}/${approval_id}/deny`, { nonce, reason })).status, 200);
  // The endpoint was denied, with whatever body, and withdrawing does not undo it.
  assertRejected(await agent.client.delete(`${APPROVALS}/${approval_id}`), 'APPROVAL_ENDED');
  const { status, text } = await send(agent, { body: 'other' });
  assert.equal(status, 403);
  const { code, message } = JSON.parse(text).error;
  assert.equal(code, 'APPROVAL_DENIED');
  assert.ok(message.includes(reason), message);
});
