// Unread bodies, clients that wait to send theirs, and clients that half-close first.
// SOURCE: RFC 9112, section 9.6; RFC 9110, section 10.1.1; docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { sendRaw } from '../kit/raw.ts';
import { type RequestParts, startFixture } from './fixture.ts';

const fixture = await startFixture({ after });
const port = Number(new URL(fixture.service.address).port);
const KEPT = 'Connection: keep-alive';
const BODY = '{"agent_name":"insider"}';
/** Only a hang reaches this limit. */
const HANG_MS = 120_000;

/** Sends the request's head, then as much body as the server accepts until it closes the connection. */
function push(asking: RequestParts): Promise<{ text: string; pushed: number; isEnded: boolean }> {
  const block = Buffer.alloc(64 * 1024, 0x20);
  return new Promise((resolve) => {
    let text = '';
    let isEnded = false;
    const socket = connect(port, '127.0.0.1', () => socket.write(fixture.bytesOf(asking)));
    const more = (): void => {
      while (!socket.destroyed && socket.write(block));
    };
    socket.on('connect', more).on('drain', more);
    socket.on('data', (chunk) => (text += chunk));
    socket.on('end', () => {
      isEnded = true;
    });
    socket.on('error', () => undefined);
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, pushed: socket.bytesWritten, isEnded });
    };
    const timer = setTimeout(finish, HANG_MS);
    socket.on('close', finish);
  });
}

const ENDLESS = [`Content-Length: ${2 ** 40}`, KEPT];
const EARLY: Readonly<Record<string, readonly [status: number, asking: RequestParts]>> = {
  'no token': [401, { method: 'POST', token: null, headers: ENDLESS }],
  'no token, in chunks': [
    401,
    { method: 'POST', token: null, headers: ['Transfer-Encoding: chunked', KEPT], body: 'fffffff\r\n' },
  ],
  'an agent at a route of the administrator': [
    403,
    { method: 'POST', target: '/api/v1/agents', token: fixture.agent.token, headers: ENDLESS },
  ],
  'a length over the limit': [413, { method: 'POST', type: 'application/json', headers: ENDLESS }],
  'no such address': [404, { method: 'POST', target: '/nowhere', token: null, headers: ENDLESS }],
  'a method that takes no body': [200, { target: '/api/v1/health', token: null, headers: ENDLESS }],
};

for (const [what, [status, asking]] of Object.entries(EARLY)) {
  test(`after an early response the body is not read: ${what}`, async () => {
    const { text, pushed } = await push({ type: null, ...asking });
    assert.match(text, new RegExp(`^HTTP/1.1 ${status} `));
    assert.match(text, /\r\nconnection: close\r\n/i);
    // The capacity of the kernel buffers on both sides.
    assert.ok(pushed < 32 * 1024 * 1024, `${pushed} bytes were taken`);
  });
}

test('the response reaches a client that is still sending', async () => {
  for (let round = 0; round < 5; round++) {
    const { text, isEnded } = await push({
      method: 'POST',
      token: null,
      headers: [`Content-Length: ${2 ** 30}`, KEPT],
    });
    assert.match(text, /^HTTP\/1\.1 401 [\s\S]*"UNAUTHENTICATED"/);
    assert.equal(isEnded, true, 'the connection is closed too');
  }
});

test('100 Continue is sent after authentication and before the body is read', () =>
  fixture.assertUnchangedBy(async () => {
    const expecting = (asking: RequestParts): Buffer =>
      fixture.bytesOf({
        method: 'POST',
        type: 'application/json',
        ...asking,
        headers: ['Expect: 100-continue', 'Content-Length: 24', KEPT],
      });
    const watched = { isComplete: (text: string) => text.includes('\r\n\r\n'), thenMs: 200 };
    const interim = async (asking: RequestParts): Promise<string> =>
      (await sendRaw(fixture.service.address, expecting(asking), watched)).head;
    assert.match(await interim({ target: '/auth/challenge', token: null }), /^HTTP\/1\.1 100 Continue$/);
    assert.match(await interim({ token: null }), /^HTTP\/1\.1 401 /);
    assert.match(await interim({ token: `lhs_${'A'.repeat(43)}` }), /^HTTP\/1\.1 401 /);
    assert.match(await interim({ target: '/nowhere', token: null }), /^HTTP\/1\.1 404 /);
  }));

test('a client that half-closes its connection gets its responses', async () => {
  const ask = (bytes: Buffer): Promise<string> =>
    new Promise((resolve, reject) => {
      let text = '';
      const socket: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => socket.end(bytes));
      socket.on('data', (chunk) => (text += chunk));
      socket.on('error', reject);
      socket.on('end', () => resolve(text));
    });
  const one = fixture.bytesOf({ target: '/api/v1/credentials/open/stored', headers: [KEPT] });
  const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
  assert.deepEqual(statuses(await ask(one)), ['200']);
  assert.deepEqual(statuses(await ask(Buffer.concat([one, one, one]))), ['200', '200', '200']);
  const posted = fixture.bytesOf({
    method: 'POST',
    target: '/auth/challenge',
    token: null,
    body: BODY,
    headers: [KEPT, `Content-Length: ${BODY.length}`],
  });
  assert.deepEqual(statuses(await ask(posted)), ['200']);
});

test('a client that half-closes its connection within a body is noticed, also with the header Upgrade', async () => {
  const leave = (bytes: Buffer): Promise<number> =>
    new Promise((resolve) => {
      const startedAt = performance.now();
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => socket.end(bytes));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(performance.now() - startedAt));
      socket.resume().on('end', () => socket.destroy());
    });
  const lengths = ['Content-Length: 1000', 'Transfer-Encoding: chunked'];
  const upgrades = [[], ['Connection: Upgrade', 'Upgrade: h2c'], ['Connection: Upgrade', 'Upgrade: websocket']];
  const sent = lengths.flatMap((length) => upgrades.map((upgrade) => [length, ...upgrade]));
  for (const headers of sent) {
    const asking = { method: 'POST', target: '/auth/challenge', token: null, type: 'application/json', headers };
    // The rest of a body may take 30 s.
    assert.ok((await leave(fixture.bytesOf({ ...asking, body: '3' }))) < 15_000, headers.join(', '));
  }
});
