// Approvals over HTTP: pending requests, their details, and the effect of an answer. SOURCE: docs/approvals.md.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import type { Client } from '../kit/client.ts';
import { until } from '../kit/log-receivers.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';
import { exchange, storeWithTargets, VALUE } from '../kit/use.ts';

const upstream = await startUpstream({ after }, (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => response.end(`got ${Buffer.concat(chunks)}`));
});
const origin = `https://127.0.0.1:${upstream.port}`;
const call = (client: Client, body: string | undefined = '{"n":1}', url = `${origin}/v1/messages?beta=true`) =>
  client.post('/api/v1/use', {
    path: 'llm/key',
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json' },
    purpose: 'a weekly report',
    ...(body === undefined ? {} : { body }),
  });

type Answer = Awaited<ReturnType<Client['get']>>;
const dataOf = ({ text }: Answer) => JSON.parse(text).data;
const errorOf = ({ text }: Answer) => JSON.parse(text).error;

interface Pending {
  readonly approval_id: string;
  readonly nonce: string;
}
const approveAs = (by: Client, { approval_id: id, nonce }: Pending) =>
  by.post(`/api/v1/approvals/${id}/approve`, { nonce });

/** A server that holds requests for that time. */
async function startHolding(approvalHoldMs: number) {
  const service = await startTestService({ after }, [], undefined, undefined, { approvalHoldMs });
  const alice = await addOperator(service, 'alice', ['approver']);
  await storeWithTargets(service, 'llm/key', upstream);
  /** An agent with its own policy. */
  const agentWith = async (name: string, approval: object, actions: readonly string[] = ['use']) => {
    const agent = await service.agent(name);
    const policy = { principal: `agent:${name}`, resources: ['llm/*'], actions, approval };
    const put = await service.admin.put(`/api/v1/policies/of-${name}`, policy);
    assert.equal(put.status, 200, put.text);
    return agent;
  };
  /** The newest pending approval of the agent, once it is there. */
  const pendingOf = async (agent: string) => {
    const pending = async () => dataOf(await alice.get(`/api/v1/approvals?status=pending&agent=${agent}`));
    await until(async () => (await pending()).length > 0);
    return (await pending())[0];
  };
  return { service, admin: service.admin, alice, agentWith, pendingOf };
}
/**
 * Holds what is answered, and ends what no operator answers. WHY two: neither then depends on the speed of the machine.
 */
const [held, brief] = [await startHolding(120_000), await startHolding(50)];

test('a request waits without a byte sent, is shown as it is, and passes when it is approved', async () => {
  const { admin, alice, agentWith, pendingOf } = held;
  const agent = await agentWith('waits', { for: 'use' });
  const before = upstream.requests.length;
  const waiting = call(agent);
  const { approval_id: id, nonce } = await pendingOf('waits');
  const shown = dataOf(await alice.get(`/api/v1/approvals/${id}`));
  assert.deepEqual(
    [shown.agent_name, shown.action, shown.path, shown.purpose, shown.policy_names, shown.quorum, shown.status],
    ['waits', 'use', 'llm/key', 'a weekly report', ['of-waits'], 1, 'pending'],
  );
  const { body_sha256: digest, ...request } = shown.request;
  assert.match(digest, /^[0-9a-f]{64}$/);
  assert.deepEqual(request, {
    headers: [{ name: 'content-type', value: 'application/json' }],
    opens_websocket: false,
    method: 'POST',
    url: `${origin}/v1/messages?beta=true`,
    content_type: 'application/json',
    body: '{"n":1}',
    body_encoding: 'utf8',
    body_bytes: 7,
    truncated: false,
  });
  assert.equal(
    shown.covers,
    `This exact POST request to ${origin}/v1/messages with llm/key by agent:waits, once, within 5 minutes.`,
  );
  assert.equal(upstream.requests.length, before);
  const answered = dataOf(await approveAs(alice, { approval_id: id, nonce }));
  assert.deepEqual([answered.status, answered.approvals[0].operator], ['approved', 'operator:alice']);
  const passed = await waiting;
  assert.equal(passed.status, 200, passed.text);
  assert.equal(dataOf(passed).body, 'got {"n":1}');
  assert.equal(upstream.requests.at(-1)?.headers.authorization, `Bearer ${VALUE}`);
  const entries = dataOf(await admin.get('/api/v1/audit?limit=4'));
  const [, intent, answer, asked] = entries;
  assert.deepEqual(
    [asked.event_type, asked.agent_name, asked.resource, asked.policy_name, asked.target_path],
    ['approval.request', 'waits', `approval:${id}`, 'of-waits', '/v1/messages'],
  );
  assert.deepEqual(
    [answer.event_type, answer.agent_name, answer.resource],
    ['approval.approve', 'operator:alice', `approval:${id}`],
  );
  assert.equal(intent.reason, `approved by operator:alice (approval:${id}); purpose: "a weekly report"`);
  const verified = dataOf(await admin.get('/api/v1/audit/verify?state=true'));
  assert.deepEqual([verified.valid, verified.state.problem_count], [true, 0]);
});

test('after the hold it is 503 with a sentence, and the same request again waits for the same approval', async () => {
  const { alice, agentWith, pendingOf } = brief;
  const agent = await agentWith('patient', { for: 'use' });
  const first = await call(agent);
  assert.deepEqual([first.status, first.headers.get('retry-after')], [503, '1']);
  const { code, message, approval_id: id } = errorOf(first);
  assert.equal(code, 'APPROVAL_PENDING');
  assert.equal(first.headers.get('x-leasehold-approval'), id);
  assert.match(message, /none has answered yet\. This is not a refusal/);
  assert.equal(errorOf(await call(agent)).approval_id, id);
  const pending = await pendingOf('patient');
  assert.equal(pending.approval_id, id);
  await approveAs(alice, pending);
  assert.equal((await call(agent)).status, 200);
  const another = errorOf(await call(agent));
  assert.equal(another.code, 'APPROVAL_PENDING');
  assert.notEqual(another.approval_id, id);
});

test('the same request again is held until the answer to the first', async () => {
  const { service, alice, agentWith, pendingOf } = held;
  const agent = await agentWith('again', { for: 'use', each: 'endpoint', scope: '2 uses' });
  const first = call(agent);
  const pending = await pendingOf('again');
  const second = call(agent);
  await until(async () => seriesValue(await scrape(service.address), 'leasehold_approvals_pending') === 2);
  await approveAs(alice, pending);
  assert.deepEqual([(await first).status, (await second).status], [200, 200]);
});

test('the five outcomes are told apart', async () => {
  const { admin, alice, agentWith, pendingOf } = held;
  const agent = await agentWith('unlucky', { for: 'use' });
  const denied = call(agent, 'denied');
  const { approval_id: id, nonce } = await pendingOf('unlucky');
  const deny = await alice.post(`/api/v1/approvals/${id}/deny`, { nonce, reason: 'not on a Friday' });
  assert.equal(dataOf(deny).status, 'denied');
  const refusal = await denied;
  assert.deepEqual([refusal.status, errorOf(refusal).code], [403, 'APPROVAL_DENIED']);
  assert.match(errorOf(refusal).message, /denied by operator:alice: not on a Friday/);

  const withdrawn = call(agent, 'withdrawn');
  const mine = await pendingOf('unlucky');
  assert.equal((await agent.delete(`/api/v1/approvals/${mine.approval_id}`)).status, 204);
  assert.equal(errorOf(await withdrawn).code, 'APPROVAL_WITHDRAWN');

  const approved = call(agent, 'approved');
  const given = await pendingOf('unlucky');
  await approveAs(alice, given);
  assert.equal((await approved).status, 200);

  const slow = await agentWith('slow', { for: 'use', timeout: 1 });
  const first = await call(slow);
  assert.deepEqual([first.status, errorOf(first).code], [403, 'APPROVAL_TIMED_OUT']);
  assert.match(errorOf(first).message, /This is not a refusal/);
  const late = await call(slow);
  assert.deepEqual([late.status, errorOf(late)], [403, errorOf(first)]);
  const { approval_id: slowId } = errorOf(late);

  await admin.put('/api/v1/policies/of-unlucky', {
    principal: 'agent:unlucky',
    resources: ['llm/*'],
    actions: ['use'],
    approval: { for: 'use', quorum: 5 },
  });
  const hopeless = await call(agent, 'five');
  assert.deepEqual([hopeless.status, errorOf(hopeless).code], [403, 'NO_APPROVER']);
  // The log tells the five apart, too. The server records an end that no answer caused.
  const entriesOf = async (event: string, query: string): Promise<{ agent_name: string; reason: string }[]> =>
    dataOf(await admin.get(`/api/v1/audit?event_type=approval.${event}&${query}`));
  const timeouts = () => entriesOf('timeout', `resource=approval:${slowId}`);
  await until(async () => (await timeouts()).length === 1);
  const told = [
    ...(await entriesOf('approve', `resource=approval:${given.approval_id}`)),
    ...(await entriesOf('deny', `resource=approval:${id}`)),
    ...(await entriesOf('withdraw', `resource=approval:${mine.approval_id}`)),
    ...(await timeouts()),
    ...(await entriesOf('request', 'agent=unlucky&result=denied')),
  ].map(({ agent_name, reason }) => [agent_name, reason]);
  assert.deepEqual(told, [
    ['operator:alice', null],
    ['operator:alice', 'not on a Friday'],
    ['unlucky', null],
    ['service', 'no answer came in time'],
    ['unlucky', 'fewer operators can approve this than the policy demands'],
  ]);
});

test('a retrieval waits too, is never remembered, and issues no lease before', async () => {
  const { alice, agentWith, pendingOf } = held;
  const agent = await agentWith('reader', { for: 'retrieve' }, ['retrieve']);
  const waiting = agent.get('/api/v1/credentials/llm/key');
  const pending = await pendingOf('reader');
  assert.deepEqual(dataOf(await agent.get('/api/v1/leases')), []);
  assert.equal(pending.covers, 'One retrieval of llm/key by agent:reader, which then has the value.');
  assert.equal(dataOf(await alice.get(`/api/v1/approvals/${pending.approval_id}`)).request, null);
  await approveAs(alice, pending);
  assert.equal(dataOf(await waiting).value, VALUE);
  const again = agent.get('/api/v1/credentials/llm/key');
  const { approval_id: other } = await pendingOf('reader');
  assert.notEqual(other, pending.approval_id);
  await agent.delete(`/api/v1/approvals/${other}`);
  assert.equal(errorOf(await again).code, 'APPROVAL_WITHDRAWN');
});

test('at a base URL the body is sent after the approval, and the error is marked as ours', async () => {
  const { service, alice, agentWith, pendingOf } = brief;
  const agent = await agentWith('sdk', { for: 'use', each: 'endpoint', scope: '2 uses' });
  const send = (body: string) =>
    exchange(
      service.address,
      '/use/llm/key/-/v1/messages',
      { authorization: `Bearer ${agent.token}` },
      { method: 'POST', body },
    );
  const pending = await send('one');
  assert.deepEqual([pending.response.statusCode, pending.response.headers['x-leasehold-error']], [503, '1']);
  await pending.text();
  await approveAs(alice, await pendingOf('sdk'));
  for (const body of ['one', 'another']) {
    const passed = await send(body);
    assert.deepEqual([passed.response.statusCode, await passed.text()], [200, `got ${body}`]);
  }
  assert.equal((await send('third')).response.statusCode, 503);
  const large = await send('x'.repeat(1024 * 1024 + 1));
  assert.equal(large.response.statusCode, 413);
});

test('an editor lifts no approval that a policy within its reach demands', async () => {
  const { service, agentWith } = brief;
  const editor = await addOperator(service, 'ed', ['editor'], { 'llm/*': ['use'] });
  await agentWith('bound', { for: 'use' });
  const path = '/api/v1/policies/of-bound';
  const without = { principal: 'agent:bound', resources: ['llm/*'], actions: ['use'] };
  for (const answer of [await editor.put(path, without), await editor.delete(path)]) {
    assert.equal(answer.status, 403, answer.text);
    assert.match(errorOf(answer).message, /a policy that demands an approval/);
  }
  const own = { ...without, name: 'of-ed', approval: { for: 'use', quorum: 2 } };
  assert.equal((await editor.post('/api/v1/policies', own)).status, 201);
});

test('an editor that needs an approval gives nothing away without that demand', async () => {
  const { service, admin } = brief;
  const editor = await addOperator(service, 'ned', ['editor']);
  const demand = { for: 'retrieve', quorum: 2 };
  const bound = { principal: 'operator:ned', resources: ['llm/*'], actions: ['retrieve', 'store'], approval: demand };
  assert.equal((await admin.put('/api/v1/policies/of-ned', bound)).status, 200);
  const grant = { name: 'mine', principal: 'agent:mine', resources: ['llm/key'], actions: ['retrieve'] };
  for (const approval of [undefined, { for: 'retrieve' }]) {
    const answer = await editor.post('/api/v1/policies', { ...grant, ...(approval === undefined ? {} : { approval }) });
    assert.equal(answer.status, 403, answer.text);
    assert.match(errorOf(answer).message, /only with the same demand for an approval/);
  }
  assert.equal((await editor.post('/api/v1/policies', { ...grant, approval: demand })).status, 201);
  const { publicKey: public_key } = newOperatorKey();
  assert.equal((await editor.post('/api/v1/agents', { name: 'mine', public_key })).status, 201);
  await admin.put('/api/v1/policies/open', { ...grant, name: undefined, principal: 'agent:other' });
  assert.equal((await editor.post('/api/v1/agents', { name: 'other', public_key })).status, 403);
});
