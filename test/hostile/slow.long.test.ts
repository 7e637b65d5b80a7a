// Slow clients are cut off: headers must be complete within 10 s, a request within 30 s. SOURCE: docs/decisions.md,
// "Requests". The time limits are shortened, the cases run concurrently, and the tests assert the order of events, not
// times.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { SERVER_TIMEOUTS } from '../../src/server/composition.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { toResponse } from '../kit/raw.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

/** A busy machine must still finish a TLS handshake within the header limit. */
const TIMEOUTS = { headersMs: 3000, requestMs: 8000, checkIntervalMs: 50 };
const { headersMs, requestMs } = TIMEOUTS;
const plain = await startTestService({ after }, [], undefined, undefined, TIMEOUTS);
const secure = await startTestService({ after }, makeCertificate({ after }).flags, undefined, undefined, TIMEOUTS);

/** Node rounds its timers down. */
const EARLY_MS = 50;

const LINE = 'POST /auth/challenge HTTP/1.1\r\n';
const HEAD = `${LINE}Host: localhost\r\nContent-Type: application/json\r\n`;
const HEALTH = 'GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n';
const tcp = ({ address }: { address: string }) => connect(Number(new URL(address).port), '127.0.0.1');
const tls = ({ address }: { address: string }) =>
  connectTls({ port: Number(new URL(address).port), host: '127.0.0.1', rejectUnauthorized: false });

/** Sends `first`, then `drop` repeatedly until the server closes; resolves to everything received and the end time. */
function drip(socket: Socket, first: string, drop: string): Promise<{ text: string; ms: number }> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    let text = '';
    if (first !== '') socket.write(first);
    const timer = setInterval(() => drop !== '' && socket.writable && socket.write(drop), headersMs / 10);
    const finish = (): void => {
      clearInterval(timer);
      resolve({ text, ms: performance.now() - startedAt });
    };
    socket.on('data', (chunk) => (text += chunk));
    socket.on('error', () => undefined);
    socket.on('close', finish);
  });
}

/** A request that is still being read when those with incomplete headers are cut off. */
let isReferenceOpen = true;

function assertCut({ text, ms }: { text: string; ms: number }, limitMs: number): void {
  assert.ok(ms > limitMs - EARLY_MS, `cut after ${Math.round(ms)} ms`);
  if (limitMs === headersMs) assert.ok(isReferenceOpen, 'not before a request whose headers were complete');
  const [head = '', body = ''] = text.slice(text.lastIndexOf('HTTP/1.1 ')).split('\r\n\r\n');
  assertRejected(toResponse({ status: Number(head.slice(9, 12)), head, body }), 'REQUEST_TIMEOUT');
}

/** The bytes sent first, and those sent repeatedly. */
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
  'a body, letter by letter': [`${HEAD}Content-Length: 5000\r\n\r\n`, 'a'],
  'a body, chunk by chunk': [`${HEAD}Transfer-Encoding: chunked\r\n\r\n`, '1\r\na\r\n'],
  'a chunk without an end': [`${HEAD}Transfer-Encoding: chunked\r\n\r\n1388\r\n`, 'a'],
};

test('the default time limits are 10 s for headers, 30 s for a request, 10 s at the stop and 25 s for approvals', () => {
  const caller = { headersMs: 10_000, requestMs: 30_000, checkIntervalMs: 1000, silenceMs: 300_000 };
  assert.deepEqual(SERVER_TIMEOUTS, { ...caller, stopMs: 10_000, approvalHoldMs: 25_000 });
});

describe('slow callers', { concurrency: true }, () => {
  test('cut by the request limit: a body that never arrives, started before all others', async () => {
    const cut = await drip(tcp(plain), `${HEAD}Content-Length: 3\r\n\r\n`, '');
    isReferenceOpen = false;
    assertCut(cut, requestMs);
  });

  for (const [what, [first, drop]] of Object.entries(SLOW_HEADERS)) {
    test(`cut by the header limit: ${what}`, async () => assertCut(await drip(tcp(plain), first, drop), headersMs));
  }

  for (const [what, [first, drop]] of Object.entries(SLOW_BODIES)) {
    test(`cut by the request limit: ${what}`, async () => assertCut(await drip(tcp(plain), first, drop), requestMs));
  }

  test('cut by the header limit: a TLS handshake that never starts', async () => {
    const { text, ms } = await drip(tcp(secure), '', '');
    assert.ok(ms > headersMs - EARLY_MS && isReferenceOpen, `cut after ${Math.round(ms)} ms`);
    assert.equal(text, '');
  });

  test('cut by the header limit: silence within TLS', async () =>
    assertCut(await drip(tls(secure), '', ''), headersMs));

  test('cut by the header limit: endless headers within TLS', async () =>
    assertCut(await drip(tls(secure), HEAD, 'X-Slow: a\r\n'), headersMs));

  for (const [what, open] of Object.entries({ 'plain HTTP': () => tcp(plain), TLS: () => tls(secure) })) {
    test(`not cut: a connection idle between requests for longer than the header limit (${what})`, async () => {
      const socket = open();
      let text = '';
      socket.on('data', (chunk) => (text += chunk));
      for (const answers of [1, 2]) {
        socket.write(HEALTH);
        while (text.split('HTTP/1.1 200 OK').length <= answers)
          await new Promise((resolve) => socket.once('data', resolve));
        if (answers === 1) await new Promise((resolve) => setTimeout(resolve, 1.5 * headersMs));
      }
      socket.destroy();
    });
  }

  test('other callers are served meanwhile', async () => {
    while (isReferenceOpen) {
      assert.equal((await plain.anonymous.get('/api/v1/health')).status, 200);
      await new Promise((resolve) => setTimeout(resolve, headersMs / 10));
    }
  });
});
