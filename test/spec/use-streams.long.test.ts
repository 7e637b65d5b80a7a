// Streams by base URL: bytes pass as they arrive, both ways, until one side leaves. That they pass at the slower side's
// speed is in test/broker/streaming.long.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startUpstream } from '../broker/upstream.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService } from '../kit/service.ts';
import { exchange, storeWithTargets } from '../kit/use.ts';
import { frame, TEXT } from '../kit/web-socket.ts';

const service = await startTestService({ after });
/** How long a request may take at the server of one test. The others need no limit that a busy machine may reach. */
const REQUEST_MS = 1500;
const { address, admin } = service;
/** The requests that the upstream has not answered, by path. */
const open = new Map<string, { request: IncomingMessage; response: ServerResponse }>();
const upstream = await startUpstream({ after }, (request, response) => {
  const { pathname } = new URL(request.url ?? '', 'http://x');
  open.set(pathname, { request, response });
  if (pathname === '/echo') void pipeline(request, response).catch(() => undefined);
  if (pathname === '/events') response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
});
upstream.server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
  socket.on('error', () => undefined);
  if (request.url === '/rejected') {
    socket.end('HTTP/1.1 418 Teapot\r\nContent-Length: 5\r\nX-Own: 1\r\n\r\nshort');
    return;
  }
  const key = request.headers['sec-websocket-key'];
  const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', `X-Key: ${key}`];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(frame(TEXT, 'hello '));
  socket.on('data', (bytes: Buffer) => socket.write(frame(TEXT, bytes)));
  socket.on('end', () => socket.end());
});
const agent = await service.agent('agent', { 'api/*': ['use'] });
const bearer = { authorization: `Bearer ${agent.token}` };
await storeWithTargets(service, 'api/key', upstream);

/** The result of the newest use, when it is recorded. */
async function newestResult() {
  const newest = async () => (await admin.get('/api/v1/audit?limit=1&order=desc')).body.data[0];
  await until(async () => (await newest()).event_type === 'credential.use_result');
  return newest();
}

function send(path: string, headers: OutgoingHttpHeaders = {}, to = address) {
  const { hostname, port } = new URL(to);
  const own = { ...bearer, 'transfer-encoding': 'chunked', ...headers };
  const request = http.request({ hostname, port, path, method: 'POST', headers: own, agent: false });
  request.on('error', () => undefined);
  return request;
}

test('each server-sent event arrives before the next is sent', async () => {
  const { response } = await exchange(address, '/use/api/key/-/events', bearer);
  assert.equal(response.headers['content-type'], 'text/event-stream');
  const upstreamSide = open.get('/events') ?? assert.fail();
  for (const n of [1, 2, 3]) {
    upstreamSide.response.write(`data: ${n}\n\n`);
    const [event] = await once(response, 'data');
    assert.equal(String(event), `data: ${n}\n\n`);
  }
  upstreamSide.response.end();
  await once(response, 'end');
  assert.equal((await newestResult()).ended, 'complete');
});

test('a body is sent on while it arrives, also for longer than other requests may take', async (t) => {
  const limits = { headersMs: REQUEST_MS, requestMs: REQUEST_MS, checkIntervalMs: 50 };
  const limited = await startTestService(t, [], undefined, undefined, limits);
  await storeWithTargets(limited, 'api/key', upstream);
  const { token } = await limited.agent('agent', { 'api/*': ['use'] });
  const own = { authorization: `Bearer ${token}` };
  const request = send('/use/api/key/-/whole', own, limited.address);
  request.write('first');
  await until(() => open.has('/whole'));
  const side = open.get('/whole') ?? assert.fail();
  const [first] = await once(side.request, 'data');
  assert.equal(String(first), 'first');
  await sleep(2 * REQUEST_MS);
  const rest = side.request.toArray();
  request.end('last');
  assert.equal(Buffer.concat(await rest).toString(), 'last');
  side.response.end('all');
  const [response]: IncomingMessage[] = await once(request, 'response');
  assert.equal(Buffer.concat((await response?.toArray()) ?? []).toString(), 'all');
  const headers = { ...own, 'content-length': 9 };
  const slow = http.request(`${limited.address}/api/v1/use`, { method: 'POST', headers });
  slow.flushHeaders();
  const [late]: IncomingMessage[] = await once(slow, 'response');
  assert.equal(late?.statusCode, 408);
  slow.destroy();
});

test('a client that disconnects cuts the use, before and after the head', async () => {
  const { response } = await exchange(address, '/use/api/key/-/events', bearer);
  const events = open.get('/events') ?? assert.fail();
  response.destroy();
  await once(events.response, 'close');
  assert.equal((await newestResult()).ended, 'client');
  const waiting = send('/use/api/key/-/never');
  waiting.end();
  await until(() => open.has('/never'));
  waiting.destroy();
  await once(open.get('/never')?.response ?? assert.fail(), 'close');
  const { ended, status } = await newestResult();
  assert.deepEqual([ended, status], ['client', null]);
});

test('a client that leaves in the middle of its body cuts the use', async () => {
  const request = send('/use/api/key/-/half');
  request.write('half');
  await until(() => open.has('/half'));
  const side = open.get('/half') ?? assert.fail();
  side.request.resume();
  request.destroy();
  await once(side.response, 'close');
  assert.equal((await newestResult()).ended, 'client');
});

test('a response that breaks off does not look complete', async () => {
  const { response, text } = await exchange(address, '/use/api/key/-/events', bearer);
  const reading = text();
  open.get('/events')?.response.destroy();
  await assert.rejects(reading, { code: 'ECONNRESET' });
  assert.equal(response.complete, false);
  assert.equal((await newestResult()).ended, 'upstream');
});

test('an upstream that answers before it has read the body ends the request', async () => {
  const request = send('/use/api/key/-/early');
  request.write('part');
  await until(() => open.has('/early'));
  open.get('/early')?.response.writeHead(413, { 'content-type': 'text/plain' }).end('too large');
  const [response]: IncomingMessage[] = await once(request, 'response');
  assert.deepEqual([response?.statusCode, response?.headers.connection], [413, 'close']);
  assert.equal(Buffer.concat((await response?.toArray()) ?? []).toString(), 'too large');
  await once(request, 'close');
});

async function upgrade(path: string, headers: OutgoingHttpHeaders = {}) {
  const own = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'a2V5', ...headers };
  const request = http.request(address + path, { headers: own, agent: false });
  request.on('error', () => undefined);
  request.end();
  const { promise, resolve } = Promise.withResolvers<{ response: IncomingMessage; socket: Socket | null }>();
  request.on('upgrade', (response, socket: Socket, head) => {
    if (head.length > 0) socket.unshift(head);
    resolve({ response, socket });
  });
  request.on('response', (response) => resolve({ response, socket: null }));
  return promise;
}

test('a WebSocket passes both ways, and ends on both sides', async () => {
  const { response, socket } = await upgrade('/use/api/key/-/socket', bearer);
  assert.ok(socket);
  assert.equal(response.headers['x-key'], 'a2V5');
  assert.equal(typeof response.headers['x-leasehold-lease'], 'string');
  assert.deepEqual((await once(socket, 'data'))[0], frame(TEXT, 'hello '));
  for (const word of ['one', 'two']) {
    socket.write(word);
    assert.deepEqual((await once(socket, 'data'))[0], frame(TEXT, word));
  }
  socket.end('last');
  assert.deepEqual(Buffer.concat(await socket.toArray()), frame(TEXT, 'last'));
  const { ended, status } = await newestResult();
  assert.deepEqual([ended, status], ['complete', 101]);
});

test('a rejected WebSocket gets an ordinary response', async () => {
  const denied = await upgrade('/use/other/-/socket', bearer);
  assert.deepEqual([denied.response.statusCode, denied.response.headers['x-leasehold-error']], [403, '1']);
  const unknown = await upgrade('/use/api/key/-/socket');
  assert.equal(unknown.response.statusCode, 401);
  const { response } = await upgrade('/use/api/key/-/rejected', bearer);
  assert.deepEqual([response.statusCode, response.headers['x-own']], [418, '1']);
  assert.equal(Buffer.concat(await response.toArray()).toString(), 'short');
});

test('an upgrade elsewhere, or to another protocol, is ignored', async () => {
  const elsewhere = await upgrade('/api/v1/health');
  assert.equal(elsewhere.response.statusCode, 200);
  const other = await upgrade('/use/api/key/-/echo', { ...bearer, upgrade: 'h2c' });
  assert.equal(other.response.statusCode, 200);
});
