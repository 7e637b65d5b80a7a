// The real SDKs run unchanged by base URL: they get a use lease's token in place of a key, and never see the value.

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { Octokit } from 'octokit';
import OpenAI from 'openai';
import Stripe from 'stripe';
import { startUpstream } from '../broker/upstream.ts';
import { newHome } from '../kit/command.ts';
import { demandApproval, findPending } from '../kit/held.ts';
import { until } from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';

const VALUE = 'sk-real-0123456789abcdefghijklmnopqrstuvwxyz';
/** Shorter than the time in which the test answers, so that each SDK has to try again. */
const HOLD_MS = 100;
const service = await startTestService({ after }, [], undefined, undefined, { approvalHoldMs: HOLD_MS });
const { admin } = service;

/** How many tries have ended without an answer. */
const countPending = async (): Promise<number> =>
  seriesValue(await scrape(service.address), 'leasehold_http_rejections_total', { code: 'APPROVAL_PENDING' });

async function readBody(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

/** Sends events one by one, each after the one before was written. */
async function sendEvents(response: ServerResponse, events: readonly string[]): Promise<void> {
  response.setHeader('content-type', 'text/event-stream');
  for (const event of events) {
    response.write(`${event}\n\n`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}

function sendJson(response: ServerResponse, body: unknown): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
}

/** A double of the services' APIs, which rejects every key but the real one, in the header of the service. */
const upstream = await startUpstream({ after }, (request, response) => void answer(request, response));

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { authorization, 'x-api-key': apiKey } = request.headers;
  const key = apiKey ?? authorization?.replace(/^(?:bearer|token) /i, '');
  const body = await readBody(request);
  if (key !== VALUE) {
    response.statusCode = 401;
    return sendJson(response, { error: { message: 'wrong key', type: 'authentication_error' } });
  }
  const path = request.url ?? '';
  if (path === '/v1/models') return sendJson(response, { object: 'list', data: [{ id: 'gpt-test', object: 'model' }] });
  if (path === '/v1/chat/completions') {
    const chunk = (content: string) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] })}`;
    return sendEvents(response, [chunk('held '), chunk('by '), chunk('lease'), 'data: [DONE]']);
  }
  if (path === '/v1/messages') {
    const { stream } = JSON.parse(body);
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'claude-test', content: [], usage: {} };
    if (stream !== true) return sendJson(response, { ...message, content: [{ type: 'text', text: 'held by lease' }] });
    const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}`;
    return sendEvents(response, [
      event('message_start', { message }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'held by lease' } }),
      event('content_block_stop', { index: 0 }),
      event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
      event('message_stop', {}),
    ]);
  }
  if (path.startsWith('/user/repos')) {
    const isFirst = !path.includes('page=2');
    const next = `https://127.0.0.1:${upstream.port}/user/repos?per_page=1&page=2`;
    if (isFirst) response.setHeader('link', `<${next}>; rel="next"`);
    return sendJson(response, [{ id: isFirst ? 1 : 2, name: isFirst ? 'first' : 'second' }]);
  }
  if (path.startsWith('/v1/customers')) {
    return sendJson(response, { object: 'list', data: [{ id: 'cus_1', object: 'customer' }], has_more: false });
  }
  response.statusCode = 404;
  sendJson(response, { error: { message: 'not found' } });
}

interface UseLease {
  readonly token: string;
  readonly base_url: string;
}

/** A use lease of an agent for a credential of the service, with the placement of the catalogue. */
async function lease(name: string, path = `sdk/${name}`): Promise<UseLease> {
  await admin.post('/api/v1/credentials', { path, value: VALUE });
  const origin = `https://127.0.0.1:${upstream.port}`;
  const targets = [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }];
  const put = await admin.put(`/api/v1/targets/${path}`, { service: name, targets });
  assert.equal(put.status, 200, put.text);
  const agent = await service.agent(path.replace('/', '-'), { [path]: ['use'] });
  const issued = await agent.post('/api/v1/leases/use', { path, ttl: 300 });
  assert.equal(issued.status, 201, issued.text);
  return JSON.parse(issued.text).data;
}

test('openai: a list, and a completion that streams', async () => {
  const { token, base_url } = await lease('openai');
  const client = new OpenAI({ apiKey: token, baseURL: `${base_url}/v1` });
  const models = await Array.fromAsync(await client.models.list());
  assert.deepEqual(
    models.map(({ id }) => id),
    ['gpt-test'],
  );
  const stream = await client.chat.completions.create({
    model: 'gpt-test',
    messages: [{ role: 'user', content: 'How is it held?' }],
    stream: true,
  });
  let text = '';
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';
  assert.equal(text, 'held by lease');
});

test('anthropic: a message, and a message that streams', async () => {
  const { token, base_url } = await lease('anthropic');
  const client = new Anthropic({ apiKey: token, baseURL: base_url });
  const request = { model: 'claude-test', max_tokens: 16, messages: [{ role: 'user' as const, content: 'How?' }] };
  const { content } = await client.messages.create(request);
  assert.deepEqual(content, [{ type: 'text', text: 'held by lease' }]);
  assert.equal(await client.messages.stream(request).finalText(), 'held by lease');
});

const ASKING: Readonly<Record<string, (lease: UseLease) => Promise<unknown>>> = {
  openai: ({ token, base_url }) =>
    new OpenAI({ apiKey: token, baseURL: `${base_url}/v1`, maxRetries: 30 }).models.list(),
  anthropic: ({ token, base_url }) =>
    new Anthropic({ apiKey: token, baseURL: base_url, maxRetries: 30 }).messages.create({
      model: 'claude-test',
      max_tokens: 16,
      messages: [{ role: 'user', content: 'How?' }],
    }),
};
for (const [name, ask] of Object.entries(ASKING)) {
  test(`${name}: a request that waits for an approval is sent again by the SDK, and passes once it is approved`, async () => {
    const path = `asked/${name}`;
    const issued = await lease(name, path);
    await demandApproval(service, `asked-${name}`, [path], { for: 'use' });
    const asked = ask(issued);
    asked.catch(() => undefined);
    const { approval_id, nonce } = await findPending(admin, path);
    const triesBefore = await countPending();
    await until(async () => (await countPending()) > triesBefore);
    assert.equal((await admin.post(`/api/v1/approvals/${approval_id}/approve`, { nonce })).status, 200);
    await asked;
    assert.equal((await admin.get(`/api/v1/approvals?agent=asked-${name}`)).body.data.length, 1);
  });
}

test('octokit: a list of two pages, whose links lead through the door', async () => {
  const { token, base_url } = await lease('github');
  const client = new Octokit({ auth: token, baseUrl: base_url });
  const repositories = await client.paginate('GET /user/repos', { per_page: 1 });
  assert.deepEqual(
    repositories.map(({ name }) => name),
    ['first', 'second'],
  );
});

test('stripe, which has no base path: its fetch client is given the door', async () => {
  const { token, base_url } = await lease('stripe');
  const throughEndpoint: typeof fetch = (url, init) => {
    const { pathname, search } = new URL(String(url));
    return fetch(`${base_url}${pathname}${search}`, init);
  };
  const client = new Stripe(token, { httpClient: Stripe.createFetchHttpClient(throughEndpoint) });
  const { data } = await client.customers.list({ limit: 1 });
  assert.equal(data[0]?.id, 'cus_1');
});

test('openai, unchanged and without options, under leasehold run --use', async (t) => {
  await lease('openai', 'sdk/run');
  const agent = await service.agent('runner', { 'sdk/run': ['use'] });
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: agent.token });
  const program = join(import.meta.dirname, 'openai-program.ts');
  const { code, stdout, stderr } = await home.leasehold(['run', '--use', 'sdk/run', '--', process.execPath, program]);
  assert.deepEqual([code, stdout, stderr], [0, 'gpt-test\nheld by lease', '']);
  const { data } = (await admin.get('/api/v1/leases?path=sdk/run&agent=runner')).body;
  assert.deepEqual(
    data.map(({ status }: { status: string }) => status),
    ['revoked'],
  );
});
