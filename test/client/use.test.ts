/** The client makes requests with credentials that it does not see, also in the shapes of `fetch`. */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LeaseholdError } from '../../src/client/leasehold.ts';
import { startUpstream } from '../broker/upstream.ts';
import { VALUE } from '../kit/use.ts';
import { AGENT, setScene, throughProxy, withCode } from './fixture.ts';

const PATH = 'openai/key';

const BINARY = Uint8Array.from({ length: 256 }, (_, at) => at);
const bodies: Buffer[] = [];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'https://upstream.test');
  const body = await buffer(request);
  bodies.push(body);
  if (pathname === '/v1/echo') response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(body);
  else if (pathname === '/v1/cookies') response.writeHead(200, { 'set-cookie': ['a=1', 'b=2'] }).end('{}');
  else if (pathname === '/v1/moved') response.writeHead(302, { location: '/v1/echo' }).end('elsewhere');
  else if (pathname === '/v1/large') response.writeHead(200).end(Buffer.alloc(Number(searchParams.get('bytes')), 'x'));
  else if (pathname === '/v1/nothing') response.writeHead(204).end();
  else response.writeHead(404, { 'x-told': 'yes' }).end('{"error":"unknown"}');
}

const scene = await setScene({ after });
const upstream = await startUpstream({ after }, (request, response) => void answer(request, response));
const origin = `https://127.0.0.1:${upstream.port}`;
const { admin, between } = scene;
await admin.credentials.store({ path: PATH, value: VALUE });
await admin.targets.put(PATH, {
  targets: [{ origin, paths: ['/v1/*'], allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }],
  placement: { kind: 'bearer' },
});
const grant = { name: 'uses', principal: `agent:${AGENT}`, resources: ['openai/*'], max_ttl: 60 };
await admin.policies.create({ ...grant, actions: ['use'] });
const agent = scene.asAgent();

test('a use returns the status, headers and body of the upstream, and never the value', async () => {
  const request = { path: PATH, method: 'GET', url: `${origin}/v1/unknown?x=1`, purpose: 'a check' };
  const { lease_id, ...reply } = await agent.use(request);
  const { headers, ...others } = reply;
  assert.deepEqual(others, {
    status: 404,
    body: '{"error":"unknown"}',
    body_encoding: 'utf8',
    redactions: 0,
    truncated: false,
  });
  assert.equal(headers['x-told'], 'yes');
  assert.equal(upstream.requests.at(-1)?.headers.authorization, `Bearer ${VALUE}`);
  assert.equal((await admin.leases.read(lease_id)).path, PATH);
});

test('fetch sends the method, headers and text of its arguments, and returns a Response', async () => {
  const text = '\ufeff{"ünï":"\\u0000𝄞"}\n';
  const response = await agent.fetch(PATH, new URL(`${origin}/v1/echo?a=b#part`), {
    method: 'post',
    headers: { 'content-type': 'application/json', 'x-own': 'mine', authorization: 'Bearer of-the-agent' },
    body: text,
    purpose: 'a check',
    ttlSeconds: 10,
  });
  assert.ok(response instanceof Response);
  assert.deepEqual([response.status, response.ok, response.url], [200, true, `${origin}/v1/echo?a=b`]);
  assert.equal(response.headers.get('content-type'), 'application/octet-stream');
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), Buffer.from(text));
  const sent = upstream.requests.at(-1);
  assert.deepEqual([sent?.method, sent?.url], ['POST', '/v1/echo?a=b']);
  assert.deepEqual([sent?.headers['x-own'], sent?.headers['content-type']], ['mine', 'application/json']);
  assert.equal(sent?.headers.authorization, `Bearer ${VALUE}`);
  const lease = await admin.leases.read(response.headers.get('x-leasehold-lease') ?? '');
  assert.equal(Date.parse(lease.expires_at) - Date.parse(lease.issued_at), 10_000);
  const { data } = await admin.audit.list({ event_type: 'credential.use', limit: 1 });
  assert.equal(data[0]?.reason, 'purpose: "a check"');
});

test('fetch sends and returns bytes that are not text, and takes a Request', async () => {
  const request = new Request(`${origin}/v1/echo`, { method: 'PUT', body: BINARY });
  const response = await agent.fetch(PATH, request);
  assert.deepEqual(new Uint8Array(await response.arrayBuffer()), BINARY);
  assert.deepEqual(bodies.at(-1), Buffer.from(BINARY));
});

test('fetch sends forms with the content type that the runtime makes', async () => {
  const form = new FormData();
  form.set('purpose', 'tuning');
  form.set('file', new Blob([BINARY]), 'data.bin');
  const response = await agent.fetch(PATH, `${origin}/v1/echo`, { method: 'POST', body: form });
  assert.equal(response.status, 200);
  assert.match(upstream.requests.at(-1)?.headers['content-type'] ?? '', /^multipart\/form-data; boundary=/);
  assert.ok(bodies.at(-1)?.includes(BINARY));
  await agent.fetch(PATH, `${origin}/v1/echo`, { method: 'POST', body: new URLSearchParams({ a: 'b c' }) });
  assert.equal(bodies.at(-1)?.toString(), 'a=b+c');
});

test('statuses, repeated headers and empty bodies are as the upstream sent them', async () => {
  const cookies = await agent.fetch(PATH, `${origin}/v1/cookies`);
  assert.deepEqual(cookies.headers.getSetCookie(), ['a=1', 'b=2']);
  const moved = await agent.fetch(PATH, `${origin}/v1/moved`);
  assert.deepEqual([moved.status, moved.redirected, await moved.text()], [302, false, 'elsewhere']);
  const nothing = await agent.fetch(PATH, `${origin}/v1/nothing`, { method: 'DELETE' });
  assert.deepEqual([nothing.status, nothing.body], [204, null]);
  const head = await agent.fetch(PATH, `${origin}/v1/echo`, { method: 'HEAD' });
  assert.deepEqual([head.status, await head.text()], [200, '']);
});

test('a body of 2 MiB is whole, and a longer one fails with TRUNCATED after its part', async () => {
  const limit = 2 * 1024 ** 2;
  const whole = await agent.fetch(PATH, `${origin}/v1/large?bytes=${limit}`);
  assert.equal((await whole.arrayBuffer()).byteLength, limit);
  const url = `${origin}/v1/large?bytes=${limit + 1}`;
  assert.equal((await agent.use({ path: PATH, method: 'GET', url })).truncated, true);
  await assert.rejects((await agent.fetch(PATH, url)).text(), { ...withCode('TRUNCATED', null), message: /at 2 MiB/ });
  const cut = await agent.fetch(PATH, url);
  assert.equal(cut.status, 200);
  let length = 0;
  await assert.rejects(
    async () => {
      for await (const chunk of cut.body ?? []) length += chunk.length;
    },
    withCode('TRUNCATED', null),
  );
  assert.equal(length, limit);
});

test('a rejection by the server is an error, and not a Response', async () => {
  const before = upstream.requests.length;
  await assert.rejects(agent.fetch(PATH, `${origin}/v2/echo`), withCode('ACCESS_DENIED', 403));
  await assert.rejects(agent.fetch('prod/db/password', `${origin}/v1/echo`), withCode('ACCESS_DENIED', 403));
  await assert.rejects(agent.fetch(PATH, `${origin}/v1/a|b`), withCode('INVALID_REQUEST', 400));
  await assert.rejects(agent.fetch(PATH, '/v1/echo'), withCode('INVALID_REQUEST', null));
  await assert.rejects(agent.fetch('../key', `${origin}/v1/echo`), withCode('INVALID_REQUEST', 400));
  const withPassword = `https://user:pass-word@127.0.0.1:${upstream.port}/v1/echo`;
  await assert.rejects(agent.fetch(PATH, withPassword), (error: unknown) => {
    assert.ok(error instanceof LeaseholdError && error.code === 'INVALID_REQUEST');
    return !`${error.stack}${error.cause}`.includes('pass-word');
  });
  const body = 'x';
  await assert.rejects(agent.fetch(PATH, `${origin}/v1/echo`, { method: 'GET', body }), { name: 'TypeError' });
  assert.equal(upstream.requests.length, before);
});

test('a use may take 11 minutes, or the time of the option', async (t) => {
  const timer = t.mock.method(globalThis, 'setTimeout');
  const limits = () => timer.mock.calls.map(({ arguments: [, delay] }) => delay);
  const request = { path: PATH, method: 'GET', url: `${origin}/v1/nothing` };
  await scene.asAdmin().use(request);
  assert.ok(limits().includes(660_000));
  timer.mock.resetCalls();
  await scene.asAdmin().targets.read(PATH);
  await scene.asAdmin({ timeoutMs: 45_000 }).use(request);
  assert.deepEqual(
    [limits().includes(30_000), limits().includes(45_000), limits().includes(660_000)],
    [true, true, false],
  );
  // WHY another proxy: on a busy machine the request that timed out may arrive during the next test.
  const own = await throughProxy(t, scene);
  own.between.next('silence');
  await assert.rejects(own.asAdmin({ timeoutMs: 50, retries: 0 }).use(request), {
    ...withCode('TIMED_OUT', null),
    message: /within 0\.05 s$/,
  });
});

test('an aborted fetch rejects with the reason of its signal', async () => {
  const stop = new AbortController();
  between.next('silence', ({ path }) => path === '/api/v1/use');
  const before = between.count('POST /api/v1/use');
  const fetching = agent.fetch(PATH, `${origin}/v1/echo`, { signal: stop.signal });
  const reason = new Error('enough');
  while (between.count('POST /api/v1/use') === before) await sleep(1);
  stop.abort(reason);
  await assert.rejects(fetching, reason);
});

test('a use whose response is lost is repeated only if its method changes nothing', async () => {
  const uses = () => between.count('POST /api/v1/use');
  const cutOnce = () => between.next('cut after', ({ path }) => path === '/api/v1/use');
  let before = uses();
  cutOnce();
  assert.equal((await agent.fetch(PATH, `${origin}/v1/echo`)).status, 200);
  assert.equal(uses() - before, 2);
  before = uses();
  cutOnce();
  const post = agent.fetch(PATH, `${origin}/v1/echo`, { method: 'POST', body: 'pay' });
  await assert.rejects(post, withCode('UNREACHABLE', null));
  assert.equal(uses() - before, 1);
});

test('a status or header that a Response cannot have is an error', async () => {
  const reply = { lease_id: 'x', headers: {}, body: '', body_encoding: 'utf8', redactions: 0, truncated: false };
  for (const change of [{ status: 999 }, { status: 200, headers: { 'a b': 'c' } }]) {
    const body = JSON.stringify({ data: { ...reply, ...change } });
    between.next({ status: 200, body }, ({ path }) => path === '/api/v1/use');
    await assert.rejects(agent.fetch(PATH, `${origin}/v1/echo`), { code: 'INVALID_RESPONSE' });
  }
});

test('a base URL has the path and the number of a target, and rejects a path that it cannot name', () => {
  const { address } = between;
  assert.equal(agent.baseURL('openai/key'), `${address}/use/openai/key/-`);
  // The server does not decode the path.
  assert.equal(agent.baseURL('git+hub/a:b@=~', 2), `${address}/use/git+hub/a:b@=~/-2`);
  for (const path of ['', 'a/-/b', '-', 'a/-1', '../x', 'a//b', 'a b', 'a?b', 'a%2Fb']) {
    assert.throws(() => agent.baseURL(path), withCode('INVALID_REQUEST', null), path);
  }
  for (const target of [0, 17, 1.5, Number.NaN]) {
    assert.throws(() => agent.baseURL(PATH, target), { code: 'BAD_OPTIONS', option: 'target' });
  }
});
