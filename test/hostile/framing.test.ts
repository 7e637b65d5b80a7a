// Request boundaries: smuggling, pipelining, and requests after an error. SOURCE: RFC 9112, sections 6 to 9.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sendRaw } from '../kit/raw.ts';
import { type RequestParts, startFixture } from './fixture.ts';

const fixture = await startFixture({ after });
const { address } = fixture.service;

const KEPT = 'Connection: keep-alive';
const BODY = '{"agent_name":"insider"}';
const LENGTH = BODY.length;
const SIZE = LENGTH.toString(16);
/** The smuggled request: a deletion, whose effect would be visible in the stored rows. */
const SMUGGLED = fixture.bytesOf({ method: 'DELETE', target: '/api/v1/credentials/open/stored', headers: [KEPT] });
const LAST = fixture.bytesOf({ target: '/api/v1/health' });

const statusesIn = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

/** The status of each response on one connection, in order, until the server closes it. */
async function statusesOf(...parts: readonly (string | Uint8Array)[]): Promise<number[]> {
  const { bytes } = await sendRaw(address, Buffer.concat(parts.map((part) => Buffer.from(part))));
  return statusesIn(String(bytes));
}

/** The same for a connection that may stay open after a response with that status. */
async function statusesUntil(last: number, ...parts: readonly Uint8Array[]): Promise<number[]> {
  const isComplete = (text: string) => statusesIn(text).at(-1) === last;
  const { bytes } = await sendRaw(address, Buffer.concat(parts), { isComplete, thenMs: 1000 });
  return statusesIn(String(bytes));
}

function challenge(headers: readonly string[], body: string | Uint8Array = BODY, more: RequestParts = {}): Buffer {
  return fixture.bytesOf({ method: 'POST', target: '/auth/challenge', headers: [KEPT, ...headers], body, ...more });
}

const chunked = (text: string, size = text.length.toString(16)) => `${size}\r\n${text}\r\n0\r\n\r\n`;

test('an ambiguous length is rejected, and nothing after it is read', () =>
  fixture.assertUnchangedBy(async () => {
    const lengths = [
      `${LENGTH}, ${LENGTH}`,
      `0, ${LENGTH}`,
      `+${LENGTH}`,
      `-${LENGTH}`,
      `0x${SIZE}`,
      `${LENGTH}.0`,
      '2e1',
      '2 4',
      '2_4',
      '',
      'chunked',
      '18446744073709551616',
      '99999999999999999999999999',
      `${LENGTH}\u000b`,
    ];
    const framings: readonly (readonly string[])[] = [
      [`Content-Length: ${LENGTH}`, 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked', `Content-Length: ${LENGTH}`],
      [`Content-Length: ${LENGTH}`, `Content-Length: ${LENGTH}`],
      [`Content-Length: ${LENGTH}`, 'Content-Length: 0'],
      ['Content-Length: 0', `Content-Length: ${LENGTH}`],
      [`Content-Length : ${LENGTH}`],
      [`Content-Length:\r\n ${LENGTH}`],
      ...lengths.map((length) => [`Content-Length: ${length}`]),
    ];
    for (const headers of framings) {
      assert.deepEqual(await statusesOf(challenge(headers), SMUGGLED), [400], JSON.stringify(headers));
    }
  }));

test('a transfer coding other than a single final chunked is rejected', () =>
  fixture.assertUnchangedBy(async () => {
    const codings = [
      'identity',
      'gzip',
      'xchunked',
      'chunkedx',
      'chunked, identity',
      'chunked;q=1',
      '"chunked"',
      'gzip, chunked',
      'identity, chunked',
      ', chunked',
      '\u000bchunked',
      'chunked\u0000',
      '\u00e7hunked',
      'chunk ed',
      ...['chunked', 'identity'].map((next) => `chunked\r\nTransfer-Encoding: ${next}`),
      'gzip\r\nTransfer-Encoding: chunked',
    ].map((coding) => `Transfer-Encoding: ${coding}`);
    for (const line of [...codings, 'Transfer-Encoding : chunked', 'Transfer-Encoding:\r\n chunked']) {
      assert.deepEqual(await statusesOf(challenge([line], chunked(BODY)), SMUGGLED), [400], JSON.stringify(line));
    }
  }));

test('chunked coding in HTTP/1.0 is rejected, and the connection is closed', () =>
  fixture.assertUnchangedBy(async () => {
    const line = 'POST /auth/challenge HTTP/1.0';
    const asked = challenge(['Transfer-Encoding: chunked'], chunked(BODY), { line });
    assert.deepEqual(await statusesOf(asked, SMUGGLED), [400]);
    assert.deepEqual(await statusesUntil(200, challenge([], BODY, { line })), [200]);
  }));

test('a chunk size must be hexadecimal digits', () =>
  fixture.assertUnchangedBy(async () => {
    const sizes = [
      'zz',
      `0x${SIZE}`,
      `-${SIZE}`,
      `+${SIZE}`,
      '',
      ` ${SIZE}`,
      `${SIZE}h`,
      'fffffffffffffffff',
      '10000000000000018',
      '5',
      'ff\u0000',
    ];
    for (const size of sizes) {
      const answers = await statusesOf(challenge(['Transfer-Encoding: chunked'], chunked(BODY, size)), SMUGGLED);
      assert.deepEqual(answers, [400], JSON.stringify(size));
    }
    for (const body of [
      `${SIZE}\n${BODY}\n0\n\n`,
      `${SIZE}\r\n${BODY}0\r\n\r\n`,
      `${SIZE}\r\n${BODY}\r\n0\n\n`,
      `${SIZE}\r${BODY}\r0\r\r`,
    ]) {
      const answers = await statusesOf(challenge(['Transfer-Encoding: chunked'], body), SMUGGLED);
      assert.deepEqual(answers, [400], JSON.stringify(body));
    }
  }));

test('a valid chunked request is accepted, and its trailers are not headers', () =>
  fixture.assertUnchangedBy(async () => {
    assert.deepEqual(await statusesOf(challenge(['Transfer-Encoding: chunked'], chunked(BODY)), LAST), [200, 200]);
    const trailer = `0\r\nAuthorization: Bearer ${fixture.service.adminToken}\r\n\r\n`;
    const guarded = fixture.bytesOf({
      method: 'DELETE',
      target: '/api/v1/credentials/open/stored',
      token: null,
      body: trailer,
      headers: ['Transfer-Encoding: chunked', 'Trailer: Authorization', KEPT],
    });
    assert.deepEqual(await statusesOf(guarded, LAST), [401], 'its body is not read, and the connection ends');
  }));

/** The server may close the connection with an error; it must not answer the smuggled request. */
function assertOnlyLast(rest: readonly number[]): void {
  assert.deepEqual(rest, rest.length === 0 ? [] : [200]);
}

/** Errors sent before or after the body is read. */
const REFUSALS: Readonly<Record<string, { asking: RequestParts; status: number }>> = {
  'no token': { asking: { token: null }, status: 401 },
  'no such address': { asking: { target: '/nowhere', type: null }, status: 404 },
  'no such method': { asking: { target: '/api/v1/health', type: null }, status: 405 },
  'a wrong type': { asking: { type: 'text/plain' }, status: 415 },
  'a wrong host': { asking: { host: 'evil.com' }, status: 421 },
  'no JSON': { asking: {}, status: 400 },
};

for (const [what, { asking, status }] of Object.entries(REFUSALS)) {
  test(`the body of a rejected request is not read as the next request (${what})`, () =>
    fixture.assertUnchangedBy(async () => {
      const refused = fixture.bytesOf({ method: 'POST', headers: [KEPT], body: SMUGGLED, ...asking });
      const [first, ...rest] = await statusesOf(refused, LAST);
      assert.equal(first, status);
      assertOnlyLast(rest);
    }));
}

test('the body of a route without a body is not read as the next request', () =>
  fixture.assertUnchangedBy(async () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      const asked = fixture.bytesOf({ method, target: '/api/v1/agents', headers: [KEPT], body: SMUGGLED });
      const [first, ...rest] = await statusesOf(asked, LAST);
      assert.equal([200, 400, 405, 415].includes(first ?? 0), true, `${method} ${first}`);
      assertOnlyLast(rest);
    }
  }));

test('a body over the limit is 413 immediately, with or without Content-Length, and closes the connection', () =>
  fixture.assertUnchangedBy(async () => {
    const tooLarge = 2 * 1024 * 1024 + 1;
    assert.deepEqual(await statusesOf(challenge([`Content-Length: ${tooLarge}`], ''), LAST), [413]);
    const body = chunked('a'.repeat(2 * tooLarge));
    const answers = await statusesOf(challenge(['Transfer-Encoding: chunked'], body), SMUGGLED);
    // Closed while the client still writes: the kernel may discard the response, but no other may replace it.
    assert.deepEqual(answers, answers.length === 0 ? [] : [413]);
  }));

test('pipelined requests are answered in order, including rejected ones', () =>
  fixture.assertUnchangedBy(async () => {
    // More than nine are tested in pipelining.test.ts.
    for (const token of [null, 'wrong']) {
      const asked = [
        fixture.bytesOf({ target: '/api/v1/agents', headers: [KEPT] }),
        fixture.bytesOf({ target: '/api/v1/agents', headers: [KEPT], token }),
        fixture.bytesOf({ target: '/api/v1/agents?x=1', headers: [KEPT] }),
        fixture.bytesOf({ target: '/api/v1/agents', headers: [KEPT] }),
      ];
      assert.deepEqual(await statusesOf(...asked, ...asked, LAST), [200, 401, 400, 200, 200, 401, 400, 200, 200]);
    }
  }));

test('invalid bytes close the connection, and their error never answers the request before them', () =>
  fixture.assertUnchangedBy(async () => {
    const honest = fixture.bytesOf({ target: '/api/v1/agents', headers: [KEPT] });
    const [first, ...rest] = await statusesOf(honest, 'no request\r\n\r\n', SMUGGLED);
    assert.notEqual(first, 400);
    assert.equal(
      rest.every((status) => status === 400),
      true,
    );
  }));

test('Upgrade and Expect are ignored', () =>
  fixture.assertUnchangedBy(async () => {
    const upgrades = [
      [
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ],
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
      ['Connection: Upgrade', 'Upgrade: TLS/1.2'],
    ];
    const asked = upgrades.map((headers) => fixture.bytesOf({ target: '/api/v1/agents', token: null, headers }));
    assert.deepEqual(await Promise.all(asked.map((bytes) => statusesUntil(401, bytes, SMUGGLED))), [
      [401],
      [401],
      [401],
    ]);
    assert.deepEqual(await statusesOf(challenge(['Expect: 100-continue']), LAST), [100, 200, 200]);
    assert.deepEqual(await statusesOf(challenge(['Expect: 200-ok']), LAST), [200, 200]);
    const tooLarge = ['Expect: 100-continue', 'Content-Length: 99999999'];
    assert.equal((await statusesUntil(413, challenge(tooLarge, ''))).at(-1), 413);
  }));
