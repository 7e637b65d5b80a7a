// A flood of connections uses slots only while it lasts. Bodies that a client announces and never sends do not delay
// others on its address, as on loopback or behind a proxy.
// SOURCE: docs/decisions.md, "Requests"; SECURITY.md, P8.

import assert from 'node:assert/strict';
import { request as requestOf } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { startTestService } from '../kit/service.ts';

const PER_ADDRESS = 500;
/** Only a hang reaches this limit. */
const HANG_MS = 120_000;

interface Held {
  readonly socket: Socket;
  /** All bytes received until the first response was complete or the server closed. */
  readonly text: string;
}

/** Opens a connection from that address, sends one request, and leaves it open. */
function hold(address: string, localAddress: string, request: string): Promise<Held> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ host: hostname, port: Number(port), localAddress }, () => socket.write(request));
    const finish = () => resolve({ socket, text });
    socket.on('data', (chunk) => {
      text += chunk;
      if (/\r\n\r\n\{.*\}$/s.test(text)) finish();
    });
    socket.on('error', finish);
    socket.on('close', finish);
  });
}

const hasAnswer = ({ text }: Held) => text.startsWith('HTTP/1.1 404 ');

test('rejected and closed connections do not count towards the limit of 500', async (t) => {
  const { address, adminToken } = await startTestService(t);
  // Authenticated connections are not closed for new ones.
  const request = `GET /auth/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;
  const attempt = async (): Promise<number> => {
    const held = await Promise.all(Array.from({ length: PER_ADDRESS + 10 }, () => hold(address, '127.0.0.5', request)));
    for (const { socket } of held) socket.destroy();
    return held.filter(hasAnswer).length;
  };
  for (let round = 0; round < 4; round++) {
    const deadline = performance.now() + HANG_MS;
    for (let served = 0; served !== PER_ADDRESS; served = await attempt()) {
      assert.equal(
        served <= PER_ADDRESS && performance.now() < deadline,
        true,
        `${served} were served in round ${round}`,
      );
    }
  }
});

test('an agent that fills the connections of its address locks out neither the administrator nor another agent', async (t) => {
  const { address, adminToken, dataDir, admin } = await startTestService(t);
  for (const name of ['greedy', 'other']) assert.equal((await admin.post('/api/v1/agents', { name })).status, 201);
  const session = (name: string) => logIn(address, name, readAgentKey(dataDir, name));
  const request = (token: string) =>
    `GET /auth/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const [greedy, other] = [request(await session('greedy')), request(await session('other'))];
  const fill = Array.from({ length: PER_ADDRESS }, () => hold(address, '127.0.0.6', greedy));
  const held = await Promise.all(fill);
  for (const asked of [request(adminToken), other]) {
    const { socket, text } = await hold(address, '127.0.0.6', asked);
    assert.match(text, /^HTTP\/1\.1 (?:200|404) /);
    held.push({ socket, text });
  }
  for (const { socket } of held) socket.destroy();
});

/** Bodies that are never sent end after 30 seconds, and so would a login that waited for them. */
const LIMIT_MS = 20_000;
const head = (line: string): string =>
  `${line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;

function send(address: string, bytes: string): Socket {
  const socket = connect(Number(new URL(address).port), '127.0.0.1', () => socket.write(bytes));
  return socket.on('error', () => undefined).resume();
}

/** Asks for a challenge in chunks; resolves to the status, or to null if none arrives in time. */
function askInChunks(address: string): Promise<number | null> {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const asked = requestOf(`${address}/auth/challenge`, { method: 'POST', agent: false, headers }, (response) => {
      resolve(response.resume().statusCode ?? null);
    });
    asked.on('error', () => resolve(null));
    asked.end('{"agent_name":"somebody"}');
    setTimeout(() => asked.destroy(), LIMIT_MS).unref();
  });
}

test('logins without an end do not hold up other logins', async (t) => {
  const { address } = await startTestService(t);
  const endless = Array.from({ length: 4 }, () => send(address, `${head('POST /auth/challenge')}1\r\n{\r\n`));
  await sleep(200);
  assert.equal(await askInChunks(address), 200);
  for (const socket of endless) socket.destroy();
});

test('headers that promise a body, without a token, do not hold up logins', async (t) => {
  const { address, adminToken } = await startTestService(t);
  const admin = createClient(address, adminToken);
  let isOver = false;
  // Requests wait only while several callers take turns.
  const callers = (async () => {
    while (!isOver) {
      for (let n = 0; n < 5; n++) send(address, head('POST /api/v1/credentials'));
      await Promise.all([admin.get('/api/v1/policies'), sleep(20)]);
    }
  })();
  await sleep(1500);
  assert.equal(await askInChunks(address), 200);
  isOver = true;
  await callers;
});
