// How many connections are served at once. How long each may take is held in test/hostile. SOURCE: decisions, "HTTP".

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { assertRefused } from '../kit/answers.ts';
import { rawRequest, sendRaw, toAnswer } from '../kit/raw.ts';
import { startTestService } from '../kit/service.ts';

const HEALTH = ['GET /api/v1/health HTTP/1.1', 'Host: localhost'];

/** Opens a connection that comes from this address of loopback; resolves when it stands. */
function open(address: string, localAddress: string): Promise<Socket> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port: Number(port), host: hostname, localAddress }, () => resolve(socket));
    socket.on('error', reject);
  });
}

/** Asks for health and keeps the connection; resolves to the first that comes back. */
function ask(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (chunk) => resolve(String(chunk))).once('close', () => resolve(''));
    socket.write(`${HEALTH.join('\r\n')}\r\n\r\n`);
  });
}

test('1,000 connections at once are served, 500 of one address, and its next one is 503 with Retry-After', async (t) => {
  const service = await startTestService(t);
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (const from of ['127.0.0.1', '127.0.0.2']) {
    sockets.push(...(await Promise.all(Array.from({ length: 500 }, () => open(service.address, from)))));
  }
  const answers = await Promise.all(sockets.map(ask));
  assert.equal(answers.filter((answer) => answer.startsWith('HTTP/1.1 200 ')).length, 1000);
  assertRefused(toAnswer(await sendRaw(service.address, rawRequest(HEALTH))), 'UNAVAILABLE');
  const other = await open(service.address, '127.0.0.3');
  sockets.push(other);
  assert.match(await ask(other), /^HTTP\/1\.1 200 /);
});
