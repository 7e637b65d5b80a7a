// Requests through the broker's process: the upstream's request, and the client's response.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { findPort } from '../kit/port.ts';
import {
  bodyOf,
  failureOf,
  headOf,
  PLAIN_VALUE,
  specFor,
  startBroker,
  startEngine,
  startUpstream,
} from './upstream.ts';

/** WHY one short limit at a time: a busy machine may need longer than it for the phases that a test is not about. */
const LONG = { connectMs: 60_000, headMs: 60_000, idleMs: 60_000 };
const broker = startBroker({ after });
const upstream = await startUpstream({ after }, (request, response) => {
  const path = request.url ?? '';
  if (path === '/echo') {
    response.writeHead(201, { 'content-type': 'text/plain', trailer: 'x-end' });
    request.on('data', (chunk) => response.write(chunk));
    request.on('end', () => {
      response.addTrailers({ 'x-end': `of ${request.headers.authorization}` });
      response.end();
    });
  } else if (path === '/broken') response.write('half');
  else if (path === '/silent') request.resume();
  else if (path === '/paused') {
    response.write('first');
    setTimeout(() => response.end(' second'), 500);
  } else if (path === '/stalled') response.write('first');
  else if (path.startsWith('/to/')) response.writeHead(302, { location: decodeURIComponent(path.slice(4)) }).end();
  else {
    response.setHeader('x-echo', request.headers.authorization ?? '');
    response.end(`Hello. You sent ${request.headers.authorization}.`);
  }
});

/** Responds before it has read the request, and soon closes the connection that nothing more is sent on. */
const hasty = await startUpstream({ after }, (_, response) => response.end('Early.'));
hasty.server.keepAliveTimeout = 100;

test('the upstream gets the credential, and the caller gets a redacted response', async () => {
  const use = broker.use(specFor(upstream), null);
  const { status, headers } = await headOf(use);
  assert.equal(status, 200);
  assert.equal(new Map(headers).get('x-echo'), 'Bearer [secret]');
  assert.equal((await bodyOf(use)).toString(), 'Hello. You sent Bearer [secret].');
  assert.equal(upstream.requests.at(-1)?.headers.authorization, `Bearer ${PLAIN_VALUE}`);
  assert.deepEqual(await use.result, { status: 200, bytesIn: 0, bytesOut: 32, redactions: 2, ended: 'complete' });
});

test('a body is sent with its length or in chunks, and trailers are returned redacted', async () => {
  for (const bodyLength of [10, null]) {
    const spec = specFor(upstream, { method: 'POST', path: '/echo', bodyLength });
    const use = broker.use(spec, Readable.from([Buffer.from('01234'), Buffer.from('56789')]));
    assert.equal((await headOf(use)).status, 201);
    assert.equal((await bodyOf(use)).toString(), '0123456789');
    assert.deepEqual(use.trailers, [['x-end', 'of Bearer [secret]']]);
    assert.deepEqual(await use.result, { status: 201, bytesIn: 10, bytesOut: 10, redactions: 1, ended: 'complete' });
    const { headers } = upstream.requests.at(-1) ?? assert.fail();
    assert.deepEqual(
      [headers['content-length'], headers['transfer-encoding']],
      bodyLength === null ? [undefined, 'chunked'] : ['10', undefined],
    );
  }
});

test('smuggling: a body of another length than announced ends the request', async () => {
  for (const bytes of ['0123', '0123456789GET / HTTP/1.1']) {
    const spec = specFor(upstream, { method: 'POST', path: '/silent', bodyLength: 10 });
    assert.equal(await failureOf(broker.use(spec, Readable.from([Buffer.from(bytes)]))), 'protocol');
  }
});

test('a response that is complete before the request ends the request', async () => {
  const body = new PassThrough();
  const use = broker.use(specFor(hasty, { method: 'POST', path: '/', bodyLength: null }), body);
  body.write('first');
  await headOf(use);
  await bodyOf(use);
  assert.equal((await use.result).ended, 'complete');
  const socket = hasty.requests.at(-1)?.socket ?? assert.fail();
  // Its end in the middle of a chunked body can be an error of the socket first.
  if (!socket.destroyed) await once(socket, 'close').catch(() => undefined);
  for (let rest = 0; rest < 3; rest++) {
    body.write('more');
    await sleep(50);
  }
  assert.notEqual(body.readableLength, 0, 'the rest is still read');
});

test('a response that breaks off fails the body, and its result says so', async () => {
  const use = broker.use(specFor(upstream, { path: '/broken' }), null);
  // The half is in the window, which is not released.
  await headOf(use);
  await sleep(50);
  upstream.requests.at(-1)?.socket.destroy();
  await assert.rejects(bodyOf(use));
  assert.deepEqual(await use.result, { status: 200, bytesIn: 0, bytesOut: 0, redactions: 0, ended: 'upstream' });
});

test('redirects are returned, never followed, and those to the own origin lead through the base URL', async () => {
  const origin = `https://127.0.0.1:${upstream.port}`;
  const moved: readonly [sent: string, expected: string][] = [
    [`${origin}/next?a=1#b`, '/use/a/-/next?a=1#b'],
    ['/next', '/use/a/-/next'],
    [`//127.0.0.1:${upstream.port}/next`, '/use/a/-/next'],
    [`https://u:p@127.0.0.1:${upstream.port}/next`, '/use/a/-/next'],
    ['https://127.0.0.1/next', 'https://127.0.0.1/next'],
    [`http://127.0.0.1:${upstream.port}/next`, `http://127.0.0.1:${upstream.port}/next`],
    ['https://evil.example/next', 'https://evil.example/next'],
    [`https://evil.example/?${PLAIN_VALUE}`, 'https://evil.example/?[secret]'],
  ];
  for (const [sent, expected] of moved) {
    const seen = upstream.requests.length;
    const spec = specFor(upstream, { path: `/to/${encodeURIComponent(sent)}`, linkPrefix: '/use/a/-' });
    const use = broker.use(spec, null);
    const { status, headers } = await headOf(use);
    assert.deepEqual([status, new Map(headers).get('location')], [302, expected]);
    await bodyOf(use);
    assert.equal(upstream.requests.length, seen + 1);
  }
});

test('each phase has a time limit', async (t) => {
  const silent = createServer(() => undefined);
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  const sockets: Socket[] = [];
  silent.on('connection', (socket) => sockets.push(socket.on('error', () => undefined)));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as { port: number };
  const connecting = startEngine(t, { timeouts: { ...LONG, connectMs: 300 } });
  assert.equal(await failureOf(connecting.use(specFor({ port, caPem: upstream.caPem }), null)), 'timeout');
  const waiting = startEngine(t, { timeouts: { ...LONG, headMs: 300 } });
  assert.equal(await failureOf(waiting.use(specFor(upstream, { path: '/silent' }), null)), 'timeout');
  // The limit of the head does not apply to the body. On a busy machine a head may come too late.
  let paused = waiting.use(specFor(upstream, { path: '/paused' }), null);
  for (let tries = 0; tries < 100 && (await paused.head).kind === 'error'; tries++)
    paused = waiting.use(specFor(upstream, { path: '/paused' }), null);
  await headOf(paused);
  assert.equal((await bodyOf(paused)).toString(), 'first second');
  const idle = startEngine(t, { timeouts: { ...LONG, idleMs: 900 } });
  const stalled = idle.use(specFor(upstream, { path: '/stalled' }), null);
  await headOf(stalled);
  await assert.rejects(bodyOf(stalled));
  assert.equal((await stalled.result).ended, 'upstream');
});

test('a caller that does not read is cut after the time that an upstream may pause', async (t) => {
  const endless = await startUpstream(t, (_, response) => response.write(Buffer.alloc(16 * 1024 * 1024)));
  const engine = startEngine(t, { timeouts: { ...LONG, idleMs: 900 } });
  const use = engine.use(specFor(endless), null);
  await headOf(use);
  const { status, ended } = await use.result;
  assert.deepEqual([status, ended], [200, 'client']);
});

test('the upstream gets the head of a request before the caller sends its body', async () => {
  const body = new PassThrough();
  const use = broker.use(specFor(hasty, { method: 'POST', path: '/', bodyLength: 10 }), body);
  assert.equal((await headOf(use)).status, 200);
  use.body.destroy();
  await use.result;
});

test('a failure has a class, and nothing else', async (t) => {
  const engine = startEngine(t, {
    resolve: async (name) => {
      if (name === 'upstream.test') return [{ address: '127.0.0.1', family: 4 }];
      throw new Error('no such name');
    },
  });
  const port = await findPort();
  const failure = async (fields: Parameters<typeof specFor>[1]) => {
    const use = engine.use(specFor(upstream, fields), null);
    const head = await use.head;
    assert.deepEqual(Object.keys(head), ['kind', 'failure']);
    assert.equal((await use.result).ended, 'failed');
    return await failureOf(use);
  };
  assert.equal(await failure({ host: 'missing.test' }), 'dns');
  assert.equal(await failure({ port }), 'connect');
  assert.equal(await failure({ caPem: null }), 'tls');
  assert.equal(await failure({ scheme: 'http' }), 'protocol');
  assert.equal(await failure({ allowNetworks: [] }), 'refused_address');
  assert.equal(await failure({ host: 'upstream.test', allowNetworks: [] }), 'refused_address');
  assert.equal(await failure({ value: 'a\nbcd' }), 'value');
  assert.equal(await failure({ value: 'abc' }), 'value');
  await headOf(engine.use(specFor(upstream, { host: 'upstream.test' }), null));
});

test('TLS: a certificate for another name is refused, whatever the authority', async (t) => {
  const engine = startEngine(t, { resolve: async () => [{ address: '127.0.0.1', family: 4 }] });
  assert.equal(await failureOf(engine.use(specFor(upstream, { host: 'other.test' }), null)), 'tls');
});

test('a reset of the stream ends the request to the upstream', async () => {
  const use = broker.use(specFor(upstream, { path: '/stalled' }), null);
  await headOf(use);
  const socket = upstream.requests.at(-1)?.socket ?? assert.fail();
  use.body.destroy();
  await once(socket, 'close');
  const { ended, status } = await use.result;
  assert.deepEqual([ended, status], ['client', 200]);
});

test('an abort cuts a use before and after its head', async () => {
  const early = new AbortController();
  const waiting = broker.use(specFor(upstream, { path: '/silent' }), null, early.signal);
  const arrived = once(upstream.server, 'request');
  await arrived;
  early.abort();
  await assert.rejects(waiting.head, { name: 'AbortError' });
  assert.equal((await waiting.result).ended, 'client');
  const late = new AbortController();
  const open = broker.use(specFor(upstream, { path: '/stalled' }), null, late.signal);
  await headOf(open);
  late.abort();
  assert.equal((await open.result).ended, 'client');
});

test('a killed broker ends its uses with a failure, and the next use works', async () => {
  const use = broker.use(specFor(upstream, { path: '/stalled' }), null);
  const waiting = broker.use(specFor(upstream, { path: '/silent' }), new PassThrough());
  await headOf(use);
  const pid = broker.pid ?? assert.fail();
  process.kill(pid, 'SIGKILL');
  await assert.rejects(bodyOf(use));
  assert.equal((await use.result).ended, 'failed');
  assert.equal(await failureOf(waiting), 'broker');
  assert.equal((await waiting.result).ended, 'failed');
  while (broker.pid === pid) await sleep(10);
  const next = broker.use(specFor(upstream), null);
  assert.equal((await headOf(next)).status, 200);
  await bodyOf(next);
  assert.notEqual(broker.pid, pid);
});

test('connections stay open for as many uses as ran at a time', async (t) => {
  const own = await startUpstream(t, (_, response) => response.end('ok'));
  for (let round = 0; round < 3; round++) {
    const uses = Array.from({ length: 60 }, () => broker.use(specFor(own), null));
    for (const use of uses) assert.equal((await bodyOf(use)).toString(), 'ok');
  }
  assert.equal(own.requests.length, 180);
  // WHY not 60: on a slow machine they may be idle for too long once.
  assert.ok(new Set(own.requests.map(({ socket }) => socket)).size <= 120);
});

test('the process has no files, no environment and no child processes', async () => {
  const pid = broker.pid ?? assert.fail();
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  assert.equal(command.includes('--permission'), true);
  assert.deepEqual(
    command.filter((word) => word.startsWith('--allow-')).map((word) => word.split('=')[0]),
    ['--allow-net', '--allow-fs-read', '--allow-fs-read'],
  );
  assert.equal(readFileSync(`/proc/${pid}/environ`, 'utf8').includes('HOME='), false);
});
