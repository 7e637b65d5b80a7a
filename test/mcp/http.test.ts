// Streamable HTTP: on loopback only, with a separate token, not for web pages, and bounded before anything is parsed.

import assert from 'node:assert/strict';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Secret } from '../../src/core/secret.ts';
import { parseListenAddress } from '../../src/mcp/http.ts';
import { createTokenCheck, makeToken, readToken } from '../../src/mcp/token.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { shows, startHttp, startStage, VALUE } from './fixture.ts';

const LIST = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
const ACCEPT = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** With any header, which fetch would not send. */
function send(
  url: string,
  headers: Record<string, string>,
  { body = LIST, method = 'POST' }: { readonly body?: string; readonly method?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { ...ACCEPT, ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

async function begin(t: TestContext, commands?: string) {
  const stage = await startStage(t, commands === undefined ? {} : { commands });
  const { serving, token } = await startHttp(t, stage.mcp);
  return { ...stage, url: serving.url, token, authorization: `Bearer ${token}` };
}

test('only the complete token is accepted', async (t) => {
  const { url, token, authorization, agent } = await begin(t);
  assert.equal((await send(url, { authorization })).status, 200);
  assert.equal((await send(url, { authorization: `bearer ${token}` })).status, 200);
  const session = await agent.logIn();
  for (const wrong of [
    {},
    { authorization: '' },
    { authorization: token },
    { authorization: `Bearer ${token}x` },
    { authorization: `Bearer ${token.slice(0, -1)}` },
    { authorization: `Bearer ${token.toLowerCase()}` },
    { authorization: `Basic ${token}` },
    { authorization: 'Bearer ' },
    // The agent's own session is not this server's token.
    { authorization: `Bearer ${session.session_id.reveal()}` },
    { cookie: `token=${token}` },
  ] as Record<string, string>[]) {
    const { status, text, headers } = await send(url, wrong);
    assert.equal(status, 401, JSON.stringify(wrong));
    assert.equal(headers['www-authenticate'], 'Bearer');
    assert.equal(text.includes(token), false);
  }
  assert.equal((await send(`${url}?token=${token}`, {})).status, 404);
});

test('a page of another site is rejected, whatever host name it uses', async (t) => {
  const { url, authorization } = await begin(t);
  const { port } = new URL(url);
  const status = async (headers: Record<string, string>) => (await send(url, { authorization, ...headers })).status;
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`])
    assert.equal(await status({ host }), 200);
  for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.nip.io']) {
    assert.equal(await status({ host }), 421, host);
  }
  assert.equal(await status({ origin: 'http://localhost:6274' }), 200);
  for (const origin of ['http://evil.example', 'https://localhost.evil.example', 'null', 'file://']) {
    assert.equal(await status({ origin }), 403, origin);
  }
});

test('one address and one method exist, and no response can be read by another site', async (t) => {
  const { url, authorization } = await begin(t);
  for (const path of ['/', '/mcp/', '/mcp?x', '//mcp', '/other']) {
    assert.equal((await send(url.replace('/mcp', path), { authorization })).status, 404, path);
  }
  for (const method of ['GET', 'DELETE', 'PUT', 'OPTIONS']) {
    const { status, headers } = await send(url, { authorization }, { method, body: '' });
    assert.equal(status, 405, method);
    assert.equal(headers['access-control-allow-origin'], undefined);
    assert.equal(headers['cache-control'], 'no-store');
  }
});

test('a body over 256 KiB is rejected, and so is one that is not JSON of the protocol', async (t) => {
  const { url, authorization } = await begin(t);
  const large = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { x: 'a'.repeat(300_000) } });
  assert.equal((await send(url, { authorization }, { body: large })).status, 413);
  assert.equal((await send(url, { authorization, 'transfer-encoding': 'chunked' }, { body: large })).status, 413);
  for (const body of ['', '{', '[]', '"x"', '{"jsonrpc":"2.0"}']) {
    assert.equal((await send(url, { authorization }, { body })).status, 400, body);
  }
  assert.equal((await send(url, { authorization, 'content-type': 'text/plain' })).status, 415);
  const called = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: '__proto__', arguments: {} } };
  const { text } = await send(url, { authorization }, { body: JSON.stringify(called) });
  assert.match(text, /"error"/);
});

test('at most 32 requests are in progress, and the next one is told to retry', async (t) => {
  const { url, authorization } = await begin(t);
  const { hostname, port } = new URL(url);
  const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n`;
  // Each has sent its head, and not its body.
  const sockets = await Promise.all(
    Array.from(
      { length: 32 },
      () =>
        new Promise<ReturnType<typeof connectSocket>>((resolve) => {
          const socket = connectSocket(Number(port), hostname, () => socket.write(head, () => resolve(socket)));
          socket.on('error', () => undefined);
        }),
    ),
  );
  let answer = await send(url, { authorization });
  const untilStatus = (status: number): Promise<void> =>
    until(async () => {
      answer = await send(url, { authorization });
      return answer.status === status;
    });
  await untilStatus(503);
  assert.equal(answer.headers['retry-after'], '1');
  for (const socket of sockets) socket.destroy();
  await untilStatus(200);
});

test('more than 16 concurrent calls are rejected one by one, and the server continues', async (t) => {
  const { url, authorization } = await begin(t);
  const call = (id: number) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'list_leases', arguments: {} },
  });
  const body = JSON.stringify(Array.from({ length: 60 }, (_, id) => call(id)));
  const { text } = await send(url, { authorization }, { body });
  assert.match(text, /BUSY: 16 calls are in progress/);
  assert.equal((await send(url, { authorization })).status, 200);
});

test('a value written over HTTP is in no header and no body', async (t) => {
  const { url, authorization } = await begin(t);
  const params = { name: 'write_credential_to_file', arguments: { path: 'prod/db/password', name: 'a' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const { status, text, headers } = await send(url, { authorization }, { body });
  assert.equal(status, 200);
  assert.match(text, /lease_id/);
  assert.equal(shows(text + JSON.stringify(headers)), false);
});

test('the server listens on loopback only', async () => {
  assert.deepEqual(parseListenAddress('127.0.0.1:7800'), { host: '127.0.0.1', port: 7800 });
  assert.deepEqual(parseListenAddress('[::1]:0'), { host: '[::1]', port: 0 });
  for (const text of ['0.0.0.0:1', '192.168.0.1:1', 'example.org:1', '127.0.0.1', ':1', 'localhost:70000', '::1:1']) {
    assert.throws(() => parseListenAddress(text), UsageError, text);
  }
});

test('a token is read from a private file of one line, and otherwise generated at each start', async (t) => {
  const folder = temporaryDirectory(t);
  const file = join(folder, 'token');
  writeFileSync(file, `${'a'.repeat(40)}\n`, { mode: 0o600 });
  assert.equal((await readToken(file)).reveal(), 'a'.repeat(40));
  assert.match(makeToken().reveal(), /^lhm_[A-Za-z0-9_-]{43}$/);
  assert.notEqual(makeToken().reveal(), makeToken().reveal());
  symlinkSync(file, join(folder, 'link'));
  await assert.rejects(readToken(join(folder, 'link')), UsageError);
  await assert.rejects(readToken(join(folder, 'none')), UsageError);
  for (const text of ['short', `${'a'.repeat(40)}\n${'b'.repeat(40)}`, `${'a'.repeat(40)} b`, '']) {
    writeFileSync(file, text);
    await assert.rejects(readToken(file), (error) => error instanceof UsageError && !error.message.includes('aaa'));
  }
  writeFileSync(file, 'a'.repeat(40));
  chmodSync(file, 0o644);
  await assert.rejects(readToken(file), UsageError);
});

test('a missing or malformed Authorization header is rejected', async () => {
  const check = await createTokenCheck(new Secret(VALUE.replaceAll(/[^a-z]/g, '')));
  assert.equal(await check(`Bearer ${VALUE.replaceAll(/[^a-z]/g, '')}`), true);
  for (const header of [undefined, '', 'Bearer', 'Bearer  ', 'Bearer a b']) assert.equal(await check(header), false);
});

test('odd headers, CONNECT, upgrades and resets end only their connection', async (t) => {
  const { url, authorization } = await begin(t);
  const { port } = new URL(url);
  const host = `Host: 127.0.0.1:${port}`;
  const heads = [
    ['CONNECT a:1 HTTP/1.1', host],
    ['CONNECT a:1 HTTP/1.1', host, 'Content-Length: 9'],
    ['GET /mcp HTTP/1.1', host, 'Connection: Upgrade', 'Upgrade: websocket'],
    [
      'POST /mcp HTTP/1.1',
      host,
      `Authorization: ${authorization}`,
      '__proto__: x',
      'constructor: y',
      'Content-Length: 9',
    ],
    ['POST /mcp HTTP/1.1', host, `Authorization: ${authorization}`, 'Expect: 100-continue', 'Content-Length: 9'],
  ];
  for (const head of heads) {
    for (let count = 0; count < 10; count++) {
      const socket = connectSocket(Number(port), '127.0.0.1');
      socket.on('error', () => undefined);
      await new Promise<void>((resolve) => socket.write(`${head.join('\r\n')}\r\n\r\n`, () => resolve()));
      socket.resetAndDestroy();
    }
  }
  await until(async () => (await send(url, { authorization })).status === 200);
});
