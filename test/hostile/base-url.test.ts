// Malformed and ambiguous requests to a base URL: none makes another request than the one that was decided.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { type RawResponse, rawRequest, sendRaw } from '../kit/raw.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets, VALUE } from '../kit/use.ts';
import { frame, TEXT } from '../kit/web-socket.ts';

const service = await startTestService({ after });
const bodies: string[] = [];
const upstream = await startUpstream({ after }, (request, response) => {
  void request.toArray().then((chunks) => {
    bodies.push(Buffer.concat(chunks).toString('latin1'));
    response.end('reached');
  });
});
upstream.server.on('upgrade', (_request, socket) => {
  socket.on('error', () => undefined);
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  socket.on('data', (bytes: Buffer) => socket.write(frame(TEXT, `<${bytes.toString('latin1')}>`)));
});
const agent = await service.agent('agent', { 'api/*': ['use'] });
await storeWithTargets(service, 'api/key', upstream, { paths: ['/v1/*'] });
const HOST = 'Host: localhost';
const OWN = `Authorization: Bearer ${agent.token}`;

/** The response, and the requests that the upstream got. */
async function send(lines: readonly string[], body = '') {
  const before = upstream.requests.length;
  const response: RawResponse = await sendRaw(service.address, rawRequest(lines, body));
  return { ...response, requests: upstream.requests.slice(before) };
}

const REJECTED: Readonly<Record<string, readonly [lines: readonly string[], body?: string]>> = {
  'both framings': [
    ['POST /use/api/key/-/v1 HTTP/1.1', HOST, OWN, 'Content-Length: 4', 'Transfer-Encoding: chunked'],
    '0\r\n\r\n',
  ],
  'another transfer coding': [
    ['POST /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, 'Transfer-Encoding: gzip, chunked'],
    '0\r\n\r\n',
  ],
  'chunked in HTTP/1.0': [['POST /use/api/key/-/v1/a HTTP/1.0', HOST, OWN, 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
  'two lengths': [['POST /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, 'Content-Length: 4', 'Content-Length: 5'], 'abcd'],
  'a folded header': [['GET /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, 'X-Own: a', ' Authorization: b']],
  'two hosts': [['GET /use/api/key/-/v1/a HTTP/1.1', HOST, HOST, OWN]],
  'another host': [['GET /use/api/key/-/v1/a HTTP/1.1', 'Host: evil.example', OWN]],
  'two Authorization headers': [['GET /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, OWN]],
  'absolute form': [['GET http://localhost/use/api/key/-/v1/a HTTP/1.1', HOST, OWN]],
  'a fragment': [['GET /use/api/key/-/v1/a#b HTTP/1.1', HOST, OWN]],
  'a backslash': [['GET /use/api/key/-/v1/..\\a HTTP/1.1', HOST, OWN]],
  'an encoded line break': [['GET /use/api/key/-/v1/a%0d%0aX:%20y HTTP/1.1', HOST, OWN]],
  'an encoded dot segment': [['GET /use/api/key/-/v1/%252e%252e/admin HTTP/1.1', HOST, OWN]],
  'a parameter of a dot segment': [['GET /use/api/key/-/v1/..;/admin HTTP/1.1', HOST, OWN]],
  'an authority after the selector': [['GET /use/api/key/-//evil.example/ HTTP/1.1', HOST, OWN]],
  'a user before the selector': [['GET /use/api/key/-@evil.example/v1/a HTTP/1.1', HOST, OWN]],
  CONNECT: [['CONNECT /use/api/key/-/v1/a HTTP/1.1', HOST, OWN]],
  TRACE: [['TRACE /use/api/key/-/v1/a HTTP/1.1', HOST, OWN]],
  'an upgrade with a body': [
    ['GET /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, 'Upgrade: websocket', 'Connection: Upgrade', 'Content-Length: 4'],
    'abcd',
  ],
};

for (const [name, [lines, body]] of Object.entries(REJECTED)) {
  test(`${name} is rejected, and nothing is sent to the upstream`, async () => {
    const { status, requests, head } = await send(lines, body);
    assert.equal(status >= 400 && status < 500, true, head);
    assert.deepEqual(requests, []);
  });
}

test('a method in a header is not another method, and headers of the connection are not forwarded', async () => {
  const { status, requests } = await send([
    'GET /use/api/key/-/v1/a HTTP/1.1',
    HOST,
    OWN,
    'X-HTTP-Method-Override: DELETE',
    'Connection: x-own, authorization',
    'X-Own: 1',
    'X_Api_Key: 2',
    'Proxy-Authorization: Basic YTpi',
    'X-Forwarded-Host: evil.example',
    'TE: trailers',
  ]);
  assert.equal(status, 200);
  const [request] = requests;
  assert.equal(request?.method, 'GET');
  assert.equal(request?.headers.authorization, `Bearer ${VALUE}`);
  const names = Object.keys(request?.headers ?? {}).sort();
  assert.deepEqual(names, ['accept-encoding', 'authorization', 'connection', 'host']);
});

test('the bytes after a body are the next request, which is decided too', async () => {
  const smuggled = ['GET /use/api/key/-/admin HTTP/1.1', HOST, OWN, 'Connection: close', '', ''].join('\r\n');
  const lines = ['POST /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, 'Content-Length: 3', '', `abc${smuggled}`];
  const before = upstream.requests.length;
  const { body } = await sendRaw(service.address, lines.join('\r\n'));
  const requests = upstream.requests.slice(before);
  assert.equal(requests.length, 1);
  assert.equal(bodies.at(-1), 'abc');
  assert.match(body, /ACCESS_DENIED/);
});

test('the bytes after a handshake belong to the WebSocket, not to a next request', async () => {
  const upgrade = ['GET /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, 'Upgrade: websocket', 'Connection: Upgrade'];
  const next = ['GET /use/api/key/-/v1/b HTTP/1.1', HOST, '', ''].join('\r\n');
  const before = upstream.requests.length;
  const isComplete = (text: string) => text.endsWith(`<${next}>`);
  const bytes = `${[...upgrade, '', ''].join('\r\n')}${next}`;
  const answer = await sendRaw(service.address, bytes, { isComplete, thenMs: 300 });
  assert.equal(answer.status, 101);
  assert.equal(answer.body, frame(TEXT, `<${next}>`).toString('utf8'));
  assert.equal(upstream.requests.length, before);
});

test('a body of single bytes arrives as it is, and other requests go on', async () => {
  const length = 4000;
  const chunked = ['POST /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, 'Transfer-Encoding: chunked', 'Connection: close'];
  const sent = send(chunked, `${'1\r\nx\r\n'.repeat(length)}0\r\n\r\n`);
  let [others, isOver] = [0, false];
  void sent.finally(() => {
    isOver = true;
  });
  for (; !isOver; others++) await service.admin.get('/api/v1/health');
  assert.equal((await sent).status, 200);
  assert.equal(bodies.at(-1), 'x'.repeat(length));
  assert.equal(others > 10, true, `${others} other requests`);
});

test('100 Continue is sent only after the use was allowed', async () => {
  const expecting = (path: string) => [
    `POST /use/api/key/-${path} HTTP/1.1`,
    HOST,
    OWN,
    'Content-Length: 3',
    'Expect: 100-continue',
    'Connection: close',
  ];
  assert.equal((await send(expecting('/denied'))).status, 403);
  assert.equal((await send(expecting('/v1/a'), 'abc')).status, 100);
});

test('an upgrade behind an unanswered request closes the connection', async () => {
  const first = ['GET /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, '', ''].join('\r\n');
  const upgrade = ['GET /use/api/key/-/v1/a HTTP/1.1', HOST, OWN, 'Upgrade: websocket', 'Connection: Upgrade', '', ''];
  const { isClosed } = await sendRaw(service.address, first + upgrade.join('\r\n'));
  assert.equal(isClosed, true);
  assert.equal((await service.admin.get('/api/v1/health')).status, 200);
});
