// Base URLs serve bytes that an agent or upstream chose at the origin of the console: nothing of them is a page there.
// Browsers are rejected, and every response says that it is no page. SOURCE: docs/use.md, "Not for browsers".

import assert from 'node:assert/strict';
import type { OutgoingHttpHeaders } from 'node:http';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { startTestService } from '../kit/service.ts';
import { exchange, storeWithTargets } from '../kit/use.ts';

const service = await startTestService({ after });
const { address } = service;
let respond: Readonly<Record<string, string | string[]>> = {};
let status = 200;
const upstream = await startUpstream({ after }, (_request, response) => {
  response
    .writeHead(status, { 'content-type': 'text/html', ...respond })
    .end(status === 304 ? '' : '<script>1</script>');
});
upstream.server.on('upgrade', (_request, socket) => {
  socket.on('error', () => undefined);
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', 'Set-Cookie: a=1'];
  socket.end(`${lines.join('\r\n')}\r\n\r\n`);
});
const agent = await service.agent('agent', { 'api/*': ['use'] });
const own = { authorization: `Bearer ${agent.token}` };
await storeWithTargets(service, 'api/key', upstream, { paths: ['/v1/*'] });

const SANDBOX = "sandbox; default-src 'none'";
const OURS = {
  'content-security-policy': SANDBOX,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
};

async function send(path: string, headers: OutgoingHttpHeaders, method = 'GET') {
  const { response, text } = await exchange(address, path, headers, { method });
  return { status: response.statusCode, headers: response.headers, text: await text() };
}

/** Each header of ours, given once. */
function assertNoPage(headers: NodeJS.Dict<string | string[]>, message: string): void {
  for (const [name, value] of Object.entries(OURS)) assert.equal(headers[name], value, `${message}: ${name}`);
}

const BROWSERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a navigation': { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'none' },
  'a mode alone': { 'sec-fetch-mode': 'navigate' },
  'a fetch without CORS': { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' },
  'a fetch of the same origin': {
    'sec-fetch-mode': 'cors',
    'sec-fetch-dest': 'empty',
    'sec-fetch-site': 'same-origin',
  },
  'a fetch of another port': { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-site' },
  'a fetch of another site': { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'cross-site' },
  'an unknown mode': { 'sec-fetch-mode': 'webtransport' },
  'a WebSocket without an upgrade': { 'sec-fetch-mode': 'websocket' },
  'two modes': { 'sec-fetch-mode': 'cors, navigate' },
  'a service worker': { 'service-worker': 'script' },
  'an activated navigation': { 'sec-fetch-user': '?1' },
  'a prefetch': { 'sec-purpose': 'prefetch' },
  'a prefetch of an older browser': { purpose: 'prefetch' },
  'a navigation over plain HTTP': { 'upgrade-insecure-requests': '1' },
  "the console's session": { cookie: 'a=b; leasehold=lhs_0123456789' },
  "the console's session over TLS": { cookie: '__Secure-leasehold=lhs_0123456789' },
};
const DESTINATIONS = [
  'document',
  'iframe',
  'frame',
  'fencedframe',
  'script',
  'image',
  'style',
  'object',
  'embed',
  'serviceworker',
  'worker',
  'sharedworker',
  'audioworklet',
  'font',
  'manifest',
  'xslt',
  'json',
  'report',
  'video',
  'track',
];

test('requests of browsers are rejected before anything is sent, whatever token they have', async () => {
  const cases = { ...BROWSERS, ...Object.fromEntries(DESTINATIONS.map((each) => [each, { 'sec-fetch-dest': each }])) };
  const before = upstream.requests.length;
  for (const [name, headers] of Object.entries(cases)) {
    for (const token of [own, {}]) {
      const answer = await send('/use/api/key/-/v1/page', { ...token, ...headers });
      assert.deepEqual([answer.status, answer.headers['x-leasehold-error']], [403, '1'], name);
      assert.match(answer.text, /base URLs are for programs, not for browsers/);
      assertNoPage(answer.headers, name);
    }
  }
  assert.equal(upstream.requests.length, before);
});

test('a token in a cookie is none, also where the credential is placed in one', async () => {
  const placement = { kind: 'header', name: 'Cookie', template: 'session={value}' };
  await storeWithTargets(service, 'api/cookie', upstream, { placement });
  const before = upstream.requests.length;
  const answer = await send('/use/api/cookie/-/v1/page', { cookie: `session=${agent.token}` });
  assert.equal(answer.status, 400, answer.text);
  assert.equal(upstream.requests.length, before);
  assert.equal((await send('/use/api/cookie/-/v1/page', own)).status, 200);
});

test("programs are served, with the headers of Node's fetch and WebSocket", async () => {
  const served = [{}, { 'sec-fetch-mode': 'cors' }, { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }];
  for (const headers of [...served, { cookie: 'a=b' }, { origin: 'https://api.example.com', accept: 'text/html' }])
    assert.equal((await send('/use/api/key/-/v1/page', { ...own, ...headers })).status, 200);
  const base = `${address}/use/api/key/-/v1`;
  assert.equal(await (await fetch(`${base}/page`, { headers: own })).text(), '<script>1</script>');
  const line = ['GET /use/api/key/-/v1/socket HTTP/1.1', 'Host: localhost', `Authorization: ${own.authorization}`];
  const upgrade = [...line, 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-Fetch-Mode: websocket'];
  const { status: switched, head } = await sendRaw(address, rawRequest(upgrade, ''));
  assert.equal(switched, 101, head);
  const names = head
    .split('\r\n')
    .slice(1)
    .map((each) => each.split(': ', 2) as [string, string]);
  assertNoPage(Object.fromEntries(names.map(([name, value]) => [name.toLowerCase(), value])), '101');
  assert.doesNotMatch(head, /set-cookie/i);
});

/** What an upstream would say of its own address, to browsers and to proxies. */
const OF_ADDRESS: Readonly<Record<string, string | string[]>> = {
  'set-cookie': ['leasehold=1; Path=/api/v1', 'b=2'],
  'clear-site-data': '"*"',
  'service-worker-allowed': '/',
  'content-security-policy': "default-src *; script-src 'unsafe-inline'",
  'content-security-policy-report-only': 'default-src *',
  'x-content-type-options': 'sniff',
  'x-frame-options': 'ALLOWALL',
  'cache-control': 'public, max-age=60',
  expires: 'Fri, 27 Nov 2099 00:00:00 GMT',
  'cdn-cache-control': 'max-age=60',
  'access-control-allow-origin': '*',
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'cross-origin-opener-policy': 'unsafe-none',
  'cross-origin-embedder-policy': 'unsafe-none',
  'timing-allow-origin': '*',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'alt-svc': 'h3="evil.example:443"',
  refresh: '0; url=https://evil.example/',
  'referrer-policy': 'unsafe-url',
  'permissions-policy': 'camera=*',
  'document-policy': 'force-load-at-top',
  'origin-agent-cluster': '?0',
  'accept-ch': 'Sec-CH-UA-Model',
  'critical-ch': 'Sec-CH-UA-Model',
  nel: '{"report_to":"x","max_age":1}',
  'report-to': '{"group":"x"}',
  'reporting-endpoints': 'x="https://evil.example/"',
  sourcemap: '/x.map',
  'speculation-rules': '"/x.json"',
  'supports-loading-mode': 'credentialed-prerender',
  'set-login': 'logged-in',
  'use-as-dictionary': 'match="/*"',
  'attribution-reporting-register-source': '{}',
  'x-accel-redirect': '/internal/secret',
  'x-sendfile': '/etc/passwd',
};
const OF_SERVICE = {
  'x-ratelimit-remaining': '9',
  'request-id': 'r1',
  'x-unknown': 'u',
  link: '<https://other.example/2>; rel="next"',
  'www-authenticate': 'Bearer realm="https://auth.example/token"',
  'content-disposition': 'inline; filename="a.json"',
  'x-accel-buffering': 'no',
  vary: 'accept',
  'retry-after': '3',
};

test('whatever the status, the response says that it is no page, and speaks for no address', async () => {
  respond = { ...OF_ADDRESS, ...OF_SERVICE };
  for (const [method, each] of [
    ['GET', 200],
    ['HEAD', 200],
    ['POST', 201],
    ['GET', 302],
    ['GET', 304],
    ['GET', 401],
    ['GET', 404],
    ['GET', 500],
    ['DELETE', 204],
  ] as const) {
    status = each;
    const answer = await send('/use/api/key/-/v1/page', own, method);
    assert.equal(answer.status, each);
    assertNoPage(answer.headers, `${method} ${each}`);
    const names = Object.keys(OF_ADDRESS).filter((name) => !(name in OURS) && answer.headers[name] !== undefined);
    assert.deepEqual(names, []);
    for (const [name, value] of Object.entries(OF_SERVICE)) assert.equal(answer.headers[name], value, name);
  }
  [status, respond] = [200, {}];
});

test('errors of ours at base URLs, and everything else that is not the console, are no pages either', async () => {
  for (const [path, headers] of [
    ['/use/api/key/-/v1/page', {}],
    ['/use/api/absent/-/v1/page', own],
    ['/use/', own],
    ['/use/api/key/-/v2/<script>', own],
    ['/use/api/key/-/../x', own],
  ] as const)
    assertNoPage((await send(path, headers)).headers, path);
  const paths = ['/use', '/%75se/x', '/', '/openapi.json', '/metrics', '/api/v1/health', '/api/v1/credentials'];
  for (const path of [...paths, '/api/v1/audit/export', '/<script>', '/console/assets/none.js', '/auth/session']) {
    const { headers } = await send(path, { authorization: `Bearer ${service.adminToken}` });
    assert.equal(headers['content-security-policy'], SANDBOX, path);
    assert.equal(headers['x-content-type-options'], 'nosniff', path);
  }
  // Rejected by the parser, before there is a request.
  for (const text of [
    'GET /use/<script> HTTP/9.9\r\n\r\n',
    `GET /use/a HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
  ]) {
    const { head } = await sendRaw(address, text);
    assert.match(head, /content-security-policy: sandbox; default-src 'none'/i);
    assert.match(head, /x-content-type-options: nosniff/i);
  }
});
