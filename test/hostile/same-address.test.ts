// An unauthenticated client on the address of others, as on loopback or behind a proxy: bodies that it announces and
// never sends do not delay them. SOURCE: SECURITY.md, P8.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../kit/client.ts';
import { startTestService } from '../kit/service.ts';

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
    const asked = request(`${address}/auth/challenge`, { method: 'POST', agent: false, headers }, (response) => {
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
