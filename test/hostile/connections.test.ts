// A flood of connections uses slots only while it lasts. The limits are tested in test/spec. SOURCE: docs/decisions.md,
// "Requests".

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { logIn, readAgentKey } from '../kit/client.ts';
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
