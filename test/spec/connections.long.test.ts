// The limits on concurrent connections. Their time limits are tested in test/hostile. SOURCE: docs/decisions.md,
// "Requests".

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { makeCertificate } from '../kit/certificate.ts';
import { rawRequest, sendRaw, toResponse } from '../kit/raw.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets } from '../kit/use.ts';

const HEALTH = ['GET /api/v1/health HTTP/1.1', 'Host: localhost'];

/** Opens a connection from this loopback address; resolves when it is established. */
function open(address: string, localAddress: string): Promise<Socket> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port: Number(port), host: hostname, localAddress }, () => resolve(socket));
    socket.on('error', reject);
  });
}

/** Sends the request and keeps the connection open; resolves to the first bytes of the response. */
function ask(socket: Socket, lines: readonly string[] = HEALTH): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (chunk) => resolve(String(chunk))).once('close', () => resolve(''));
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  });
}

const openMany = (address: string, localAddress: string, count: number): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => open(address, localAddress)));

const isServed = (answer: string): boolean => answer.startsWith('HTTP/1.1 200 ');

test('1,000 concurrent authenticated connections are served, 500 of one address, and its next one is 503', async (t) => {
  const service = await startTestService(t);
  const session = ['GET /api/v1/agents HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${service.adminToken}`];
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (const from of ['127.0.0.1', '127.0.0.2']) sockets.push(...(await openMany(service.address, from, 500)));
  const answers = await Promise.all(sockets.map((socket) => ask(socket, session)));
  assert.equal(answers.filter(isServed).length, 1000);
  assertRejected(toResponse(await sendRaw(service.address, rawRequest(HEALTH))), 'UNAVAILABLE');
  const other = await open(service.address, '127.0.0.3');
  sockets.push(other);
  assert.match(await ask(other), /^HTTP\/1\.1 200 /);
  assert.equal(isServed(await ask(sockets[0] ?? assert.fail())), true, 'those that there are go on');
});

test('at the limit unauthenticated connections are closed, the longest idle one first', async (t) => {
  const service = await startTestService(t);
  const [silent, partial, asked] = [200, 200, 100];
  const sockets = await openMany(service.address, '127.0.0.1', silent + partial + asked);
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const closed = new Set<Socket>();
  for (const socket of sockets) socket.on('close', () => closed.add(socket));
  for (const socket of sockets.slice(silent, silent + partial)) socket.write('GET /api/v1/health HTTP/1.1\r\nX: ');
  await Promise.all(sockets.slice(-asked).map((socket) => ask(socket)));
  for (let n = 0; n < 20; n++) {
    const fresh = await open(service.address, '127.0.0.1');
    sockets.push(fresh);
    assert.equal(isServed(await ask(fresh)), true);
  }
  while (closed.size < 20) await new Promise((resolve) => setImmediate(resolve));
  const others = [...closed].filter((socket) => !sockets.slice(0, silent).includes(socket));
  assert.deepEqual(others, [], 'only connections that never asked were closed');
});

test('connections with the token of a use lease count as those of its agent', async (t) => {
  const service = await startTestService(t);
  await storeWithTargets(service, 'api/key', [{ origin: 'https://api.example.com' }]);
  const agent = await service.agent('agent', { 'api/*': ['use'] });
  const { token } = (await agent.post('/api/v1/leases/use', { path: 'api/key' })).body.data;
  // Fewer than the limit of the address, because clients of the test keep connections too.
  const sockets = await openMany(service.address, '127.0.0.1', 480);
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const denied = ['GET /use/api/other/-/ HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${token}`];
  const answers = await Promise.all(sockets.map((socket) => ask(socket, denied)));
  assert.equal(answers.filter((answer) => answer.startsWith('HTTP/1.1 403')).length, 480);
  sockets.push(...(await openMany(service.address, '127.0.0.1', 30)));
  const fresh = await open(service.address, '127.0.0.1');
  sockets.push(fresh);
  assert.equal(isServed(await ask(fresh)), true);
});

test('an authenticated connection is not closed for a new one, within TLS too', async (t) => {
  for (const flags of [[], makeCertificate(t).flags]) {
    const service = await startTestService(t, flags);
    const port = Number(new URL(service.address).port);
    const known =
      flags.length === 0 ? await open(service.address, '127.0.0.1') : connectTls({ port, rejectUnauthorized: false });
    const session = ['GET /api/v1/agents HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${service.adminToken}`];
    assert.equal(isServed(await ask(known, session)), true);
    const address = `http://127.0.0.1:${port}`;
    const sockets = [...(await openMany(address, '127.0.0.1', 499)), ...(await openMany(address, '127.0.0.1', 20))];
    t.after(() => {
      for (const socket of [known, ...sockets]) socket.destroy();
    });
    assert.equal(isServed(await ask(known, session)), true);
  }
});
