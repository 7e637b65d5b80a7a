// A browser runs nothing that an agent or upstream chose at the origin of the console: pages at base URLs, elements of
// other pages that load them, forms, fetches and service workers, over plain HTTP and TLS, wherever the token is.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { startUpstream } from '../broker/upstream.ts';
import { startBrowser, type TestPage } from '../kit/browser.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { storeWithTargets, VALUE } from '../kit/use.ts';

/** A name without TLS that is not this machine's own, so that a browser sends no `Sec-Fetch-*` to it. */
const PLAIN_NAME = 'vault.test';
const TLS_NAME = 'vault.localhost';

/** Names of the scripts that ran in a browser. */
const ran = new Set<string>();
const HOSTILE = {
  'service-worker-allowed': '/',
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'authorization',
  'cross-origin-resource-policy': 'cross-origin',
  'content-security-policy': "default-src * 'unsafe-inline'",
  'clear-site-data': '"*"',
};
const upstream = await startUpstream({ after }, (request, response) => serveHostile(request, response), 'http');
const canary = `http://127.0.0.1:${upstream.port}/ran`;
upstream.server.on('upgrade', (_request, socket) => socket.on('error', () => undefined).destroy());

function serveHostile({ url = '' }: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(url, 'http://upstream');
  const script = (name: string): string => `void fetch('${canary}?by=${name}', { mode: 'no-cors' });`;
  if (pathname === '/ran') ran.add(searchParams.get('by') ?? '');
  const [type, body] =
    pathname === '/attack'
      ? ['text/html', '<!doctype html><title>attack</title><body>']
      : pathname === '/v1/page'
        ? [
            'text/html',
            `<!doctype html><title>ours</title><script>${script('page')} document.title = 'owned';</script>`,
          ]
        : pathname === '/v1/style'
          ? ['text/css', `body { background: url('${canary}?by=style') }`]
          : ['text/javascript', script(pathname.slice('/v1/'.length))];
  response.writeHead(200, { ...HOSTILE, 'content-type': type }).end(body);
}

const browser = await startBrowser({ after }, [PLAIN_NAME]);
const plain = await startTestService({ after }, ['--public-name', PLAIN_NAME]);
const portOf = ({ address }: TestService): string => new URL(address).port;
const plainToken = await tokensOf(plain);

/** The base URLs of a server, with the agent's token where a link, a form or a header can have it. */
async function tokensOf(service: TestService) {
  const agent = await service.agent('agent', { 'api/*': ['use'] });
  const target = { origin: `http://127.0.0.1:${upstream.port}`, allow_networks: ['127.0.0.0/8'], paths: ['/v1/*'] };
  const placements = {
    query: { kind: 'query', name: 'key' },
    bearer: { kind: 'bearer' },
    header: { kind: 'header', name: 'Referer', template: '{value}' },
    basic: { kind: 'basic', username: 'user' },
  };
  for (const [name, placement] of Object.entries(placements))
    await storeWithTargets(service, `api/${name}`, [target], { placement });
  return agent.token;
}

/** Runs in a page of another origin. Resolves to what could be read of the responses, when all of them have ended. */
const ATTACK = `async ({ base, query, token }) => {
  const make = (tag, fields) => Object.assign(document.createElement(tag), fields);
  const ended = (element, parent = document.body) => new Promise((resolve) => {
    element.onload = element.onerror = element.onclose = resolve;
    if (element instanceof Node) parent.append(element);
  });
  const page = base + '/page' + query;
  const framed = async (method) => {
    const frame = make('iframe', { name: 'frame-' + document.forms.length });
    await ended(frame);
    const form = make('form', { action: base + '/page', method, target: frame.name });
    for (const [name, value] of new URLSearchParams(query)) form.append(make('input', { name, value }));
    if (method === 'post') form.action = page;
    document.body.append(form);
    const loaded = new Promise((resolve) => { frame.onload = resolve; });
    form.submit();
    await loaded;
  };
  await ended(make('iframe', { src: page }));
  await ended(make('script', { src: base + '/script' + query }));
  await ended(make('script', { src: base + '/module' + query, type: 'module' }));
  await ended(make('img', { src: base + '/image' + query }));
  await ended(make('link', { href: base + '/style' + query, rel: 'stylesheet' }));
  // Not every browser says when these have ended.
  document.body.append(make('object', { data: page }), make('embed', { src: page }));
  await framed('get');
  await framed('post');
  await ended(new WebSocket(base.replace(/^http/, 'ws') + '/socket' + query));
  const events = new EventSource(page);
  await ended(events);
  events.close();
  const read = [];
  for (const options of [
    {},
    { mode: 'no-cors' },
    { method: 'POST', body: 'a' },
    { headers: { authorization: 'Bearer ' + token } },
    { headers: { authorization: 'Basic ' + btoa('user:' + token) } },
    { credentials: 'include' },
  ]) read.push(await fetch(page, options).then((response) => response.text(), () => ''));
  return read;
}`;

/** The attacks fail loudly in the page's console. */
async function openExpectingErrors(scope: Scope, address: string, options = {}): Promise<TestPage> {
  const opened = await browser.open(scope, 'about:blank', { ignoreHTTPSErrors: true, ...options });
  void opened.expectReport(/./);
  await opened.page.goto(address);
  return opened;
}

const usedRequests = () =>
  upstream.requests.filter(({ url = '', headers }) => JSON.stringify([url, headers]).includes(VALUE));

async function attackFromElsewhere(page: Page, base: string, token: string): Promise<string[]> {
  const query = `?key=${token}`;
  return page.evaluate<string[]>(`(${ATTACK})(${JSON.stringify({ base, query, token })})`);
}

interface Place {
  readonly origin: string;
  readonly token: string;
  /** Whether browsers mark their requests to it. */
  readonly isMarked: boolean;
}

/** The targets and the token are of the vault before it has TLS: the test's client does not know the certificate. */
const dataDir = join(temporaryDirectory({ after }), 'data');
const unsecured = await startTestService({ after }, [], dataDir);
const secureToken = await tokensOf(unsecured);
await unsecured.stop();
const { flags } = makeCertificate({ after }, `DNS:${TLS_NAME}`);
const secure = await startTestService({ after }, [...flags, '--public-name', TLS_NAME], dataDir);
const PLACES: Readonly<Record<string, Place>> = {
  'plain HTTP at 127.0.0.1': { origin: plain.address, token: plainToken, isMarked: true },
  'plain HTTP at localhost': { origin: `http://localhost:${portOf(plain)}`, token: plainToken, isMarked: true },
  'plain HTTP at a name': { origin: `http://${PLAIN_NAME}:${portOf(plain)}`, token: plainToken, isMarked: false },
  'TLS at a name': { origin: `https://${TLS_NAME}:${portOf(secure)}`, token: secureToken, isMarked: true },
};

const PLACEMENTS = ['query', 'bearer', 'header', 'basic'] as const;

test('the attack runs against an upstream that is not behind the vault', async (t) => {
  const { page } = await openExpectingErrors(t, `http://127.0.0.1:${upstream.port}/attack`);
  ran.clear();
  const read = await attackFromElsewhere(page, `http://localhost:${upstream.port}/v1`, 'none');
  for (const name of ['page', 'script', 'module']) assert.ok(ran.has(name), name);
  assert.match(read[0] ?? '', /owned/);
});

for (const [name, { origin, token, isMarked }] of Object.entries(PLACES)) {
  test(`${name}: nothing that a base URL returns runs or can be read, from a link or another origin`, async (t) => {
    const { page } = await openExpectingErrors(t, `http://127.0.0.1:${upstream.port}/attack`);
    ran.clear();
    const before = usedRequests().length;
    for (const placement of PLACEMENTS) {
      const base = `${origin}/use/api/${placement}/-/v1`;
      const inUrl = base.replace('://', `://user:${token}@`);
      for (const link of [`${base}/page?key=${token}`, `${inUrl}/page`]) {
        const response = await page.goto(link, { referer: `http://127.0.0.1:${upstream.port}/attack?${token}` });
        assert.equal(response?.status(), 403, link);
        assert.notEqual(await page.title(), 'owned');
      }
    }
    await page.goto(`http://127.0.0.1:${upstream.port}/attack`);
    for (const placement of PLACEMENTS) {
      const read = await attackFromElsewhere(page, `${origin}/use/api/${placement}/-/v1`, token);
      assert.deepEqual(
        read.filter((text) => text !== ''),
        [],
      );
    }
    assert.deepEqual([...ran], []);
    if (isMarked) assert.equal(usedRequests().length, before);
  });
}

test('a script at the origin of the console can register no service worker, and load no script, from a base URL', async (t) => {
  const marked = Object.values(PLACES).filter(({ isMarked }) => isMarked);
  for (const [{ origin, token }, placement] of marked.flatMap((place) =>
    PLACEMENTS.map((placement) => [place, placement] as const),
  )) {
    const { page } = await openExpectingErrors(t, `${origin}/console/`, { bypassCSP: true });
    ran.clear();
    const before = usedRequests().length;
    const outcomes = await page.evaluate<string[]>(`(async () => {
      const address = '/use/api/${placement}/-/v1/worker?key=${token}';
      const said = (promise) => promise.then(() => 'done', (error) => error.name);
      const script = Object.assign(document.createElement('script'), { src: address });
      return [
        await said(navigator.serviceWorker.register(address)),
        await said(navigator.serviceWorker.register(address, { scope: '/' })),
        await new Promise((resolve) => {
          script.onload = () => resolve('load');
          script.onerror = () => resolve('error');
          document.body.append(script);
        }),
        await fetch(address).then((response) => String(response.status)),
      ];
    })()`);
    assert.match(outcomes.slice(0, 2).join(), /^(?:TypeError|SecurityError),(?:TypeError|SecurityError)$/);
    assert.deepEqual(outcomes.slice(2), ['error', '403']);
    assert.deepEqual([...ran], []);
    assert.equal(usedRequests().length, before);
  }
});

/** Forwards to the server without the headers that mark requests of browsers: the second line has to hold by itself. */
async function startForwarder(scope: Scope, address: string): Promise<string> {
  const { host, hostname, port } = new URL(address);
  const server = http.createServer((request, response) => {
    const { 'upgrade-insecure-requests': _, ...given } = request.headers;
    const unmarked = Object.entries(given).filter(([name]) => !name.startsWith('sec-'));
    const options = { hostname, port, path: request.url, method: request.method };
    const sent = http.request({ ...options, headers: { ...Object.fromEntries(unmarked), host } }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
      answer.pipe(response);
    });
    request.pipe(sent);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  scope.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a browser that marks no request shows the response as a page that runs nothing and shares no origin', async (t) => {
  const forwarder = await startForwarder(t, plain.address);
  const { page } = await openExpectingErrors(t, `http://127.0.0.1:${upstream.port}/attack`);
  ran.clear();
  const before = usedRequests().length;
  const base = `${forwarder}/use/api/query/-/v1`;
  const response = await page.goto(`${base}/page?key=${plainToken}`);
  assert.equal(response?.status(), 200);
  assert.equal(await page.title(), 'ours');
  assert.equal(await page.evaluate('self.origin'), 'null');
  assert.ok(usedRequests().length > before);
  await page.goto(`http://127.0.0.1:${upstream.port}/attack`);
  const read = await attackFromElsewhere(page, base, plainToken);
  assert.deepEqual(
    read.filter((text) => text !== ''),
    [],
  );
  assert.deepEqual([...ran], []);
});
