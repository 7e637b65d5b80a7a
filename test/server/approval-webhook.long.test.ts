// The webhook for approvals on a real receiver: the message, the data that it never contains, and that no request waits
// for it.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readConfiguration } from '../../src/server/configuration.ts';
import { startUpstream } from '../broker/upstream.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { type HttpCall, startHttpReceiver, until } from '../kit/log-receivers.ts';
import { addOperator } from '../kit/operators.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { storeWithTargets } from '../kit/use.ts';

const KEY = Buffer.alloc(32, 7);
const SECRET = `whsec_${KEY.toString('base64')}`;

const t = { after };
let calls: HttpCall[] = [];
let respond: (call: HttpCall) => number | Promise<number> = () => 204;
const port = await startHttpReceiver(t, (call, response) => {
  calls.push(call);
  void Promise.resolve(respond(call)).then((status) => response.writeHead(status).end());
});
const secretFile = join(temporaryDirectory(t), 'secret');
writeFileSync(secretFile, SECRET, { mode: 0o600 });
const flags = ['--approval-webhook', `http://127.0.0.1:${port}/in`, '--approval-webhook-secret-file', secretFile];
const service = await startTestService(t, [...flags, '--console-url', 'https://vault.example.org']);
const upstream = await startUpstream(t, (_request, response) => response.end('done'));
await storeWithTargets(service, 'llm/key', upstream);
const alice = await addOperator(service, 'alice', ['approver']);
const agent = await service.agent('bot');
const policy = { principal: 'agent:bot', resources: ['llm/*'], actions: ['use'] };
const approval = { for: 'use', each: 'endpoint', scope: '3 uses' };
await service.admin.put('/api/v1/policies/asks', { ...policy, approval });
const send = (path: string) =>
  agent.post('/api/v1/use', {
    path: 'llm/key',
    method: 'POST',
    url: `https://127.0.0.1:${upstream.port}${path}`,
    body: 'the-body',
    purpose: 'the-purpose',
  });
const pending = async () => {
  let found: { approval_id: string; nonce: string } | undefined;
  await until(async () => {
    [found] = (await alice.get('/api/v1/approvals?status=pending')).body.data;
    return found !== undefined;
  });
  return found ?? { approval_id: '', nonce: '' };
};
const answer = ({ approval_id: id, nonce }: { approval_id: string; nonce: string }, verb: 'approve' | 'deny') =>
  alice.post(`/api/v1/approvals/${id}/${verb}`, { nonce, ...(verb === 'deny' ? { reason: 'the-reason' } : {}) });
const messages = () => calls.map(({ body }) => JSON.parse(body));

/** The messages by their result. */
async function webhooksOf({ address }: TestService) {
  const families = await scrape(address);
  const count = (result: string) => seriesValue(families, 'leasehold_approval_webhooks_total', { result });
  return { sent: count('sent'), failed: count('failed'), dropped: count('dropped') };
}

test('each request and each outcome is one signed message with a link, and nothing that could answer it', async () => {
  calls = [];
  const held = send('/v1/pay?the-query=1');
  const approval = await pending();
  const { approval_id: id, nonce } = approval;
  await answer(approval, 'approve');
  assert.equal((await held).status, 200);
  // The grant passes more of them without another message.
  assert.equal((await send('/v1/pay')).status, 200);
  const denied = send('/v1/other');
  await answer(await pending(), 'deny');
  assert.equal((await denied).status, 403);
  await until(() => calls.length >= 4);
  assert.deepEqual(
    messages().map(({ type }) => type),
    ['approval.requested', 'approval.approved', 'approval.requested', 'approval.denied'],
  );
  const [first, second] = messages();
  const url = `https://vault.example.org/console/approvals/${id}`;
  const { covers, requested_at, expires_at, ...data } = first.data;
  assert.deepEqual(data, {
    approval_id: id,
    status: 'pending',
    agent_name: 'bot',
    action: 'use',
    path: 'llm/key',
    policy_names: ['asks'],
    quorum: 1,
    approved_by: [],
    answered_at: null,
    answered_by: null,
    url,
  });
  assert.equal(Date.parse(expires_at) - Date.parse(requested_at), 300_000);
  assert.match(covers, /^Any POST request to https:\S+\/v1\/pay with llm\/key by agent:bot, 3 times/);
  assert.match(
    first.text,
    /^agent:bot asks to use llm\/key for a POST request to https:\S+; an operator can answer until /,
  );
  assert.ok(first.text.endsWith(`: ${url}`));
  assert.match(second.text, /was approved by operator:alice: https:/);
  assert.deepEqual([second.data.answered_by, second.data.approved_by], ['operator:alice', ['operator:alice']]);
  for (const { headers, body, url: path } of calls) {
    for (const secret of ['the-query', 'the-body', 'the-purpose', 'the-reason', nonce, 'sk-test']) {
      assert.equal(body.includes(secret), false, secret);
    }
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', KEY).update(signed).digest('base64')}`);
    assert.equal(path, '/in');
  }
  assert.deepEqual(
    calls.slice(0, 2).map(({ headers }) => headers['webhook-id']),
    [`approval-${id}-requested`, `approval-${id}-approved`],
  );
  // The content of the message answers nothing: not without an operator, and not without the nonce.
  const path = `/api/v1/approvals/${id}/approve`;
  assert.equal((await service.anonymous.post(path, { nonce: id })).status, 401);
  assert.equal((await agent.post(path, { nonce: id })).status, 403);
  // A message is counted once its response was read.
  await until(async () => (await webhooksOf(service)).sent === 4);
  const families = await scrape(service.address);
  assert.equal(seriesValue(families, 'leasehold_approvals_total', { outcome: 'approved' }), 1);
  assert.equal(seriesValue(families, 'leasehold_approvals_total', { outcome: 'denied' }), 1);
  assert.equal(seriesValue(families, 'leasehold_approvals_total', { outcome: 'timed_out' }), 0);
  assert.equal(seriesValue(families, 'leasehold_approval_wait_seconds_count'), 2);
  assert.equal(seriesValue(families, 'leasehold_approvals_pending'), 0);
});

test('a receiver that fails gets the same messages again in their order, and no request waits for it', async () => {
  const first = Promise.withResolvers<number>();
  const statuses = [first.promise, 302, 204, 400, 204];
  respond = () => statuses.shift() ?? 204;
  calls = [];
  const before = await webhooksOf(service);
  const held = send('/v1/second');
  const approval = await pending();
  await answer(approval, 'approve');
  assert.equal((await held).status, 200);
  // It has passed although the receiver has not responded.
  await until(() => calls.length === 1);
  first.resolve(503);
  const other = send('/v1/third');
  await answer(await pending(), 'deny');
  await other;
  await until(() => calls.length >= 6);
  const ids = calls.map(({ headers }) => String(headers['webhook-id']));
  const [asked, approved] = ['requested', 'approved'].map((kind) => `approval-${approval.approval_id}-${kind}`);
  assert.deepEqual(
    ids.filter((id) => id.startsWith(`approval-${approval.approval_id}`)),
    [asked, asked, asked, approved],
  );
  const counted = async () => {
    const { sent, failed, dropped } = await webhooksOf(service);
    return { sent: sent - before.sent, failed: failed - before.failed, dropped: dropped - before.dropped };
  };
  await until(async () => {
    const { sent, dropped } = await counted();
    return sent === 3 && dropped === 1;
  });
  assert.deepEqual(await counted(), { sent: 3, failed: 2, dropped: 1 });
});

test('a message that the receiver never takes holds up no other one', async () => {
  const poison = '/v1/poison';
  const isPoison = ({ body }: HttpCall): boolean => body.includes(poison);
  respond = (call) => (isPoison(call) ? 500 : 204);
  calls = [];
  const first = send(poison);
  await answer(await pending(), 'deny');
  await first;
  const other = send('/v1/fourth');
  await answer(await pending(), 'deny');
  await other;
  const taken = () => calls.filter((call) => !isPoison(call)).map(({ body }) => JSON.parse(body).type);
  await until(() => taken().length === 2);
  assert.deepEqual(taken(), ['approval.requested', 'approval.denied']);
});

test('its address and its secret are given together, and an address has TLS and no password', () => {
  const read = (...flags: string[]) => readConfiguration(flags, {});
  const file = ['--approval-webhook-secret-file', '/x'] as const;
  assert.throws(() => read('--approval-webhook', 'https://a.example/in'), /go together/);
  assert.throws(() => read(...file), /go together/);
  assert.throws(() => read('--approval-webhook', 'http://a.example/in', ...file), /use https/);
  assert.throws(() => read('--approval-webhook', 'https://u:p@a.example/in', ...file), /must not contain credentials/);
  assert.equal(read('--approval-webhook', 'https://a.example/in', ...file)?.approvalWebhook?.url.host, 'a.example');
});
