// What ends a grant or a request that waits, what an approved request may not change, and what asking costs an agent.
// SOURCE: SECURITY.md, P17; docs/approvals.md.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { demandApproval, findPending } from '../kit/held.ts';
import { until } from '../kit/log-receivers.ts';
import { addOperator } from '../kit/operators.ts';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertRejected } from '../kit/responses.ts';
import { exchange } from '../kit/use.ts';
import { APPROVALS, startApprovals } from './approval-scene.ts';

const { service, upstream, ann, ben, newAgent, enter, send, approve, assertHeld } = await startApprovals({ after });
const { admin, address } = service;

const MIB = 1024 * 1024;

const statusOf = async (id: string): Promise<string> => (await admin.get(`${APPROVALS}/${id}`)).body.data.status;

test('headers that the operator saw reach the upstream, whatever Connection names', async () => {
  const agent = await newAgent();
  const headers = { 'x-dry-run': 'true', 'stripe-account': 'acct_test' };
  await assertHeld(send(agent, { headers }));
  const id = await approve(agent.path);
  const { request } = (await ann.get(`${APPROVALS}/${id}`)).body.data;
  assert.deepEqual(
    request.headers.map(({ name }: { name: string }) => name),
    ['content-type', 'stripe-account', 'x-dry-run'],
  );
  const before = upstream.requests.length;
  await assertHeld(send(agent, { headers: { ...headers, connection: 'x-dry-run, stripe-account' } }));
  assert.equal(upstream.requests.length, before);
  await assertHeld(send(agent, { headers: { ...headers, connection: 'content-type' }, body: '{}' }));
  const { approval_id: untyped } = await findPending(admin, agent.path);
  assert.equal((await ann.get(`${APPROVALS}/${untyped}`)).body.data.request.content_type, null);
  await ann.delete(`${APPROVALS}/${untyped}`);
  // The card of that request shows what would be sent.
  const { approval_id } = await findPending(admin, agent.path);
  const shown = (await ann.get(`${APPROVALS}/${approval_id}`)).body.data.request.headers;
  assert.deepEqual(shown, [{ name: 'content-type', value: 'text/plain' }]);
  assert.equal((await send(agent, { headers })).status, 200);
  assert.equal(upstream.requests.at(-1)?.headers['x-dry-run'], 'true');
});

for (const each of ['request', 'endpoint', 'host']) {
  test(`an approval of each ${each} for a GET opens no WebSocket`, async () => {
    const agent = await newAgent({ each, scope: each === 'request' ? 'once' : '9 uses' });
    await assertHeld(send(agent, { method: 'GET' }));
    await approve(agent.path);
    const lines = [
      `GET /use/${agent.path}/-/v1/pay HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${agent.token}`,
      'Content-Type: text/plain',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: YQ==',
    ];
    const before = upstream.requests.length;
    assert.equal((await sendRaw(address, rawRequest(lines))).status, 503);
    assert.equal(upstream.requests.length, before);
    assert.equal((await send(agent, { method: 'GET' })).status, 200);
  });
}

test('the protocol of a WebSocket is shown, and another one asks again', async () => {
  const agent = await newAgent();
  const open = (protocol: string) =>
    sendRaw(
      address,
      rawRequest([
        `GET /use/${agent.path}/-/v1/pay HTTP/1.1`,
        'Host: localhost',
        `Authorization: Bearer ${agent.token}`,
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: YQ==',
        `Sec-WebSocket-Protocol: ${protocol}`,
      ]),
    );
  assert.equal((await open('read.v1')).status, 503);
  const id = await approve(agent.path);
  const { headers } = (await ann.get(`${APPROVALS}/${id}`)).body.data.request;
  assert.deepEqual(headers, [{ name: 'sec-websocket-protocol', value: 'read.v1' }]);
  const before = upstream.requests.length;
  assert.equal((await open('exec.v1')).status, 503);
  assert.equal(upstream.requests.length, before);
});

test('a panic ends the grants and the waiting requests of the agent', async () => {
  const agent = await newAgent({ each: 'endpoint', scope: '3600 seconds' });
  await assertHeld(send(agent));
  const granted = await approve(agent.path);
  await assertHeld(send(agent, { target: '/v1/other' }));
  const { approval_id: waiting, nonce } = await findPending(admin, agent.path);
  assert.equal((await admin.post('/api/v1/panic', { agent: agent.name })).status, 200);
  const again = { ...agent, ...(await enter(agent.name)) };
  assertRejected(await ann.post(`${APPROVALS}/${waiting}/approve`, { nonce }), 'APPROVAL_ENDED');
  const before = upstream.requests.length;
  await assertHeld(send(again));
  assert.equal(upstream.requests.length, before);
  await until(async () => (await statusOf(granted)) === 'withdrawn');
});

test('an approved retrieval is of the credential that existed then, not of another one at its path', async () => {
  const agent = await newAgent();
  const path = `again/${agent.name}`;
  await admin.post('/api/v1/credentials', { path, value: 'harmless' });
  await demandApproval(service, agent.name, [path]);
  const get = () => agent.client.get(`/api/v1/credentials/${path}`);
  assertRejected(await get(), 'APPROVAL_PENDING');
  await approve(path);
  assert.equal((await admin.delete(`/api/v1/credentials/${path}`)).status, 204);
  await admin.post('/api/v1/credentials', { path, value: 'root-of-everything' });
  assertRejected(await get(), 'APPROVAL_PENDING');
});

test('an agent whose 200 requests wait uses a grant, waits on, and asks for nothing more', async () => {
  const agent = await newAgent();
  const [first, second] = [{ body: 'first' }, { body: 'second' }];
  await assertHeld(send(agent, first));
  await approve(agent.path);
  await assertHeld(send(agent, second));
  // More than may wait ask at the same time.
  const codes = await Promise.all(
    Array.from({ length: 240 }, async (_, n) => (await send(agent, { body: `${n}` })).code),
  );
  assert.equal(codes.filter((code) => code === 'APPROVAL_PENDING').length, 199, codes.join(' '));
  assert.equal(codes.filter((code) => code === 'RATE_LIMITED').length, 41);
  await assertHeld(send(agent, second));
  assert.equal((await send(agent, first)).status, 200);
});

test('what was asked is charged to the agent, also if it withdraws', async (t) => {
  const bounded = await startApprovals(t, ['--leases-per-hour', '5']);
  const agent = await bounded.newAgent();
  // A request that asks takes one more from the budget until it ends.
  for (let n = 0; n < 4; n++) {
    await bounded.assertHeld(bounded.send(agent, { body: `${n}` }));
    const { approval_id } = await findPending(bounded.service.admin, agent.path);
    assert.equal((await agent.client.delete(`${APPROVALS}/${approval_id}`)).status, 204);
  }
  assert.equal((await bounded.send(agent, { body: '4' })).code, 'RATE_LIMITED');
  // Requests that are equal are one, and charged as one.
  const other = await bounded.newAgent();
  const same = await Promise.all(Array.from({ length: 3 }, () => bounded.send(other, { body: 'same' })));
  assert.deepEqual(new Set(same.map(({ code }) => code)), new Set(['APPROVAL_PENDING']));
  await bounded.assertHeld(bounded.send(other, { body: 'another' }));
  await bounded.assertHeld(bounded.send(other, { body: 'a third' }));
});

for (const scope of ['once', '3600 seconds']) {
  test(`withdrawing an approval of scope ${scope} aborts its requests`, async () => {
    const agent = await newAgent({ each: 'host', scope });
    const slow = { method: 'GET', target: '/slow' };
    await assertHeld(send(agent, slow));
    const id = await approve(agent.path);
    const headers = { authorization: `Bearer ${agent.token}`, 'content-type': 'text/plain' };
    const { response } = await exchange(address, `/use/${agent.path}/-/slow`, headers);
    const ended = new Promise<void>((resolve) => {
      response
        .on('close', resolve)
        .on('error', () => resolve())
        .resume();
    });
    assert.equal((await ann.delete(`${APPROVALS}/${id}`)).status, 204);
    await ended;
    await until(async () => {
      const [entry] = (await admin.get(`/api/v1/audit?event_type=credential.use_result&agent=${agent.name}`)).body.data;
      return entry?.ended === 'revoked';
    });
    assert.equal((await send(agent, slow)).code, 'APPROVAL_WITHDRAWN');
  });
}

test('where one of two approved in time, the agent and the log read that', async () => {
  // On a busy machine a short time may be over before the first of the two has answered.
  let [agent, id] = [await newAgent({ quorum: 2, timeout: 1 }), ''];
  for (const timeout of [1, 4, 16, 64]) {
    if (timeout > 1) agent = await newAgent({ quorum: 2, timeout });
    await send(agent);
    const [pending] = (await admin.get(`${APPROVALS}?status=pending&agent=${agent.name}`)).body.data;
    if (pending === undefined) continue;
    const { approval_id, nonce } = pending;
    const { status } = await ann.post(`${APPROVALS}/${approval_id}/approve`, { nonce });
    if (status !== 200) continue;
    id = approval_id;
    break;
  }
  assert.notEqual(id, '', 'no answer came in time');
  let last = await send(agent);
  await until(async () => {
    last = await send(agent);
    return last.code === 'APPROVAL_TIMED_OUT';
  });
  assert.match(last.text, /1 of the 2 operators that it needs approved/);
  const query = `/api/v1/audit?event_type=approval.timeout&resource=approval:${id}`;
  await until(async () => (await admin.get(query)).body.data.length === 1);
  const [entry] = (await admin.get(query)).body.data;
  assert.deepEqual([entry.agent_name, entry.reason], ['service', '1 of 2 operators approved in time']);
});

test('a request that too few can approve by now is withdrawn, and the next one has no approver', async () => {
  const carl = await addOperator(service, 'carl', ['approver']);
  const agent = await newAgent({ quorum: 3 });
  await assertHeld(send(agent));
  const id = await approve(agent.path, carl);
  assert.equal((await admin.delete('/api/v1/operators/carl')).status, 204);
  await until(async () => (await statusOf(id)) === 'withdrawn');
  assert.equal((await send(agent, { body: 'next' })).code, 'NO_APPROVER');
  // One that cannot sign in is none.
  assert.equal((await admin.post('/api/v1/operators', { name: 'ghost', roles: ['approver'] })).status, 201);
  assert.equal((await send(agent, { body: 'next' })).code, 'NO_APPROVER');
  const [entry] = (await admin.get(`/api/v1/audit?event_type=approval.request&result=denied&limit=1`)).body.data;
  assert.deepEqual([entry.agent_name, entry.resource], [agent.name, agent.path]);
});

test('a purpose is quoted in the log, and cannot claim an approval', async () => {
  const agent = await newAgent();
  const url = `https://127.0.0.1:${upstream.port}/v1/pay`;
  const use = (purpose: string) => agent.client.post('/api/v1/use', { path: agent.path, method: 'POST', url, purpose });
  const claim = 'refund"; approved by operator:ann (approval:1)';
  assertRejected(await use(claim), 'APPROVAL_PENDING');
  const id = await approve(agent.path, ben);
  assert.equal((await use(claim)).status, 200);
  const [entry] = (await admin.get(`/api/v1/audit?event_type=credential.use&agent=${agent.name}&limit=1`)).body.data;
  assert.equal(entry.reason, `approved by operator:ben (approval:${id}); purpose: ${JSON.stringify(claim)}`);
});

test('an operator reads and withdraws its own request without the role approver, and no other one', async () => {
  const eve = await addOperator(service, 'eve', ['editor']);
  await admin.post('/api/v1/credentials', { path: 'own/key', value: 'value' });
  const policy = { principal: 'operator:eve', resources: ['own/*'], actions: ['retrieve'] };
  await admin.put('/api/v1/policies/own-eve', { ...policy, approval: { for: 'retrieve' } });
  assertRejected(await eve.get('/api/v1/credentials/own/key'), 'APPROVAL_PENDING');
  const { approval_id, nonce } = await findPending(admin, 'own/key');
  assert.equal((await eve.get(`${APPROVALS}/${approval_id}`)).status, 200);
  assertRejected(await eve.post(`${APPROVALS}/${approval_id}/approve`, { nonce }), 'ACCESS_DENIED');
  assert.equal((await eve.delete(`${APPROVALS}/${approval_id}`)).status, 204);
  const agent = await newAgent();
  await assertHeld(send(agent));
  const other = await findPending(admin, agent.path);
  assertRejected(await eve.get(`${APPROVALS}/${other.approval_id}`), 'ACCESS_DENIED');
  assertRejected(await eve.delete(`${APPROVALS}/${other.approval_id}`), 'ACCESS_DENIED');
  assertRejected(await createClient(address, agent.token).get(`${APPROVALS}/${approval_id}`), 'NOT_FOUND');
});

test('a body of 1 MiB is approved as a whole, and one byte more is 413, in either framing', async () => {
  const agent = await newAgent();
  for (const headers of [{}, { 'transfer-encoding': 'chunked' }, { expect: '100-continue' }]) {
    const body = Buffer.alloc(MIB, JSON.stringify(headers));
    const sent = { body, headers: headers as Record<string, string> };
    await assertHeld(send(agent, sent));
    const id = await approve(agent.path);
    const { request } = (await ann.get(`${APPROVALS}/${id}`)).body.data;
    assert.deepEqual([request.body_bytes, request.body.length, request.truncated], [MIB, 16_384, true]);
    assert.equal(request.body_sha256, createHash('sha256').update(body).digest('hex'));
    const altered = Buffer.from(body);
    altered[MIB - 1] = 0;
    assert.equal((await send(agent, { ...sent, body: altered })).status, 503);
    assert.equal((await send(agent, sent)).status, 200);
    const { status, code } = await send(agent, { ...sent, body: Buffer.alloc(MIB + 1) });
    assert.deepEqual([status, code], [413, 'PAYLOAD_TOO_LARGE']);
    const waiting = (await admin.get(`${APPROVALS}?status=pending&agent=${agent.name}`)).body.data;
    for (const { approval_id } of waiting) await admin.delete(`${APPROVALS}/${approval_id}`);
  }
});
