// Callers that are slow on purpose are cut: headers must be complete within 10 s, a request within 30 s. SOURCE: decisions, "HTTP".
// The cases wait side by side, so that the file takes as long as the longest of them.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { makeCertificate } from '../kit/certificate.ts';
import { toAnswer } from '../kit/raw.ts';
import { assertRefused } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const plain = await startTestService({ after });
const secure = await startTestService({ after }, makeCertificate({ after }).flags);

const LINE = 'POST /auth/challenge HTTP/1.1\r\n';
const HEAD = `${LINE}Host: localhost\r\nContent-Type: application/json\r\n`;
const HEALTH = 'GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n';
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
/** The limits are looked at once a second, and a busy machine is late. */
const LATE_MS = 6000;

const tcp = ({ address }: { address: string }) => connect(Number(new URL(address).port), '127.0.0.1');
const tls = ({ address }: { address: string }) =>
  connectTls({ port: Number(new URL(address).port), host: '127.0.0.1', rejectUnauthorized: false });

/** Sends `first`, then `drop` again and again, until the server closes; resolves to all that came back and when it ended. */
function drip(socket: Socket, first: string, drop: string, everyMs = 400): Promise<{ text: string; ms: number }> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    let text = '';
    if (first !== '') socket.write(first);
    const timer = setInterval(() => drop !== '' && socket.writable && socket.write(drop), everyMs);
    const giveUp = setTimeout(() => socket.destroy(), REQUEST_MS + 2 * LATE_MS);
    const finish = (): void => {
      clearInterval(timer);
      clearTimeout(giveUp);
      resolve({ text, ms: performance.now() - startedAt });
    };
    socket.on('data', (chunk) => (text += chunk));
    socket.on('error', () => undefined);
    socket.on('close', finish);
  });
}

function assertCut({ text, ms }: { text: string; ms: number }, limitMs: number): void {
  assert.equal(ms > limitMs - 500 && ms < limitMs + LATE_MS, true, `cut after ${Math.round(ms)} ms`);
  const [head = '', body = ''] = text.slice(text.lastIndexOf('HTTP/1.1 ')).split('\r\n\r\n');
  assertRefused(toAnswer({ status: Number(head.slice(9, 12)), head, body, isClosed: true }), 'REQUEST_TIMEOUT');
}

/** What is sent first, and then every 400 ms. */
const SLOW_HEADERS: Readonly<Record<string, readonly [first: string, drop: string]>> = {
  'nothing at all': ['', ''],
  'nothing but empty lines': ['', '\r\n'],
  'a request line, letter by letter': ['GET /', 'a'],
  'a request line without an end': ['GET /api/v1/health HTTP/1.1', ''],
  'a request line of HTTP/0.9': ['GET /api/v1/health\r\n', ''],
  'a header, letter by letter': [`${LINE}Host: localhost\r\nX-Slow: `, 'a'],
  'header after header': [HEAD, 'X-Slow: a\r\n'],
  'headers without the empty line': [`${HEAD}Content-Length: 3\r\n`, ''],
  'a second request on a connection that was used before': [`${HEALTH}${HEAD}`, 'X-Slow: a\r\n'],
};

const SLOW_BODIES: Readonly<Record<string, readonly [first: string, drop: string]>> = {
  'a body that never comes': [`${HEAD}Content-Length: 3\r\n\r\n`, ''],
  'a body, letter by letter': [`${HEAD}Content-Length: 5000\r\n\r\n`, 'a'],
  'a body, chunk by chunk': [`${HEAD}Transfer-Encoding: chunked\r\n\r\n`, '1\r\na\r\n'],
  'a chunk without an end': [`${HEAD}Transfer-Encoding: chunked\r\n\r\n1388\r\n`, 'a'],
};

describe('slow callers', { concurrency: true }, () => {
  for (const [what, [first, drop]] of Object.entries(SLOW_HEADERS)) {
    test(`cut after 10 s: ${what}`, async () => assertCut(await drip(tcp(plain), first, drop), HEADERS_MS));
  }

  for (const [what, [first, drop]] of Object.entries(SLOW_BODIES)) {
    test(`cut after 30 s: ${what}`, async () => assertCut(await drip(tcp(plain), first, drop), REQUEST_MS));
  }

  test('cut after 10 s: a TLS handshake that never begins', async () => {
    const { text, ms } = await drip(tcp(secure), '', '');
    assert.equal(ms > HEADERS_MS - 500 && ms < HEADERS_MS + LATE_MS, true, `cut after ${Math.round(ms)} ms`);
    assert.equal(text, '');
  });

  test('cut after 10 s: nothing but silence within TLS', async () =>
    assertCut(await drip(tls(secure), '', ''), HEADERS_MS));

  test('cut after 10 s: header after header within TLS', async () =>
    assertCut(await drip(tls(secure), HEAD, 'X-Slow: a\r\n'), HEADERS_MS));

  for (const [what, open] of Object.entries({ 'plain HTTP': () => tcp(plain), TLS: () => tls(secure) })) {
    test(`not cut: a connection that rests for 15 s between two requests (${what})`, async () => {
      const socket = open();
      let text = '';
      socket.on('data', (chunk) => (text += chunk));
      for (const answers of [1, 2]) {
        socket.write(HEALTH);
        while (text.split('HTTP/1.1 200 OK').length <= answers)
          await new Promise((resolve) => socket.once('data', resolve));
        if (answers === 1) await new Promise((resolve) => setTimeout(resolve, 15_000));
      }
      socket.destroy();
    });
  }

  test('meanwhile everybody else is answered at once', async () => {
    for (let second = 0; second < 12; second++) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      const startedAt = performance.now();
      assert.equal((await plain.anonymous.get('/api/v1/health')).status, 200);
      assert.equal(performance.now() - startedAt < 5000, true);
    }
  });
});
