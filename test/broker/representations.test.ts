// Headers that describe a representation are kept as far as they stay true: HEAD, entity tags and conditions. A part of
// a representation that was not requested is not released. SOURCE: docs/use.md, "What is sent, and what comes back".

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import type { HeaderPairs } from '../../src/broker/protocol.ts';
import { bodyOf, failureOf, headOf, specFor, startEngine, startUpstream } from './upstream.ts';

let respond: (response: ServerResponse, request: IncomingMessage) => void = () => undefined;
const upstream = await startUpstream({ after }, (request, response) => respond(response, request));
const engine = startEngine({ after }, {});

const start = (method: string, headers: HeaderPairs = []) => engine.use(specFor(upstream, { method, headers }), null);

/** The response's status, its body and its headers by their names in lower case. */
async function send(method: string, headers: HeaderPairs = []) {
  const use = start(method, headers);
  const head = await headOf(use);
  const named = Object.fromEntries(head.headers.map(([name, value]) => [name.toLowerCase(), value]));
  return { status: head.status, headers: named, body: (await bodyOf(use)).toString() };
}

const DESCRIPTION = {
  'content-length': '12',
  'content-encoding': 'gzip',
  'content-md5': 'abc',
  'repr-digest': 'sha-256=:x:',
  'last-modified': 'Thu, 26 Nov 2026 00:00:00 GMT',
  'x-linked-etag': '"sha"',
};

test('HEAD keeps what describes the representation, and GET what stays true of it', async () => {
  respond = (response, { method }) => {
    const headers = { ...DESCRIPTION, etag: '"v1"', 'accept-ranges': 'bytes' };
    if (method === 'HEAD') response.writeHead(200, headers).end();
    else response.writeHead(200, { ...headers, 'content-encoding': 'identity' }).end('twelve bytes');
  };
  const head = await send('HEAD');
  const { date: _date, connection: _connection, 'keep-alive': _alive, ...described } = head.headers;
  assert.deepEqual(described, { ...DESCRIPTION, etag: 'W/"v1"' });
  const { headers, body } = await send('GET');
  assert.equal(body, 'twelve bytes');
  for (const name of ['content-length', 'content-encoding', 'content-md5', 'repr-digest', 'accept-ranges'])
    assert.equal(headers[name], undefined, name);
  assert.deepEqual(
    [headers['etag'], headers['last-modified'], headers['x-linked-etag']],
    ['W/"v1"', DESCRIPTION['last-modified'], '"sha"'],
  );
});

/** Compares the text of a single tag, as many servers do. */
const conditional =
  (tag: string) =>
  (response: ServerResponse, { headers, method }: IncomingMessage): void => {
    const isFailed = headers['if-match'] !== undefined && headers['if-match'] !== tag;
    const isKnown = headers['if-none-match'] === tag && ['GET', 'HEAD'].includes(method ?? '');
    response.writeHead(isFailed ? 412 : isKnown ? 304 : 200, { etag: tag, vary: 'accept' }).end(isKnown ? '' : 'body');
  };

for (const tag of ['"v1"', 'W/"v1"', 'W/"v1--weak"', '""', 'W/""', '"a,b"']) {
  test(`the tag ${tag} comes back weak, and matches again in a condition`, async () => {
    respond = conditional(tag);
    const { etag = '' } = (await send('GET')).headers;
    assert.match(etag, /^W\/"[^"]*"$/);
    assert.equal((await send('HEAD')).headers['etag'], etag);
    for (const method of ['GET', 'HEAD']) {
      const known = await send(method, [['If-None-Match', etag]]);
      assert.deepEqual([known.status, known.headers['etag'], known.headers['vary']], [304, etag, 'accept']);
      assert.equal((await send(method, [['If-None-Match', '"other"']])).status, 200);
    }
    assert.equal((await send('PUT', [['If-Match', etag]])).status, 200);
    assert.equal((await send('PUT', [['If-Match', tag === '"v1"' ? 'W/"v2"' : 'W/"v1x"']])).status, 412);
  });
}

test('conditions with lists, *, strong tags and times are sent as they are meant', async () => {
  respond = (response) => response.end();
  const sent = async (name: string, value: string) => {
    await send('GET', [[name, value]]);
    return upstream.requests.at(-1)?.headers[name.toLowerCase()];
  };
  assert.equal(await sent('If-None-Match', 'W/"a", "b", W/"c--weak"'), '"a", "b", W/"c"');
  assert.equal(await sent('If-None-Match', '*'), '*');
  assert.equal(await sent('If-Modified-Since', DESCRIPTION['last-modified']), DESCRIPTION['last-modified']);
  assert.equal(await sent('X-Own', 'W/"a"'), 'W/"a"');
});

test('the tag of what a request stored, and a text that is no tag, stay as they are', async () => {
  respond = (response) => response.writeHead(200, { etag: '"part-1"' }).end();
  for (const method of ['PUT', 'POST', 'PATCH']) assert.equal((await send(method)).headers['etag'], '"part-1"');
  respond = (response) => response.writeHead(200, { etag: 'bare' }).end();
  assert.equal((await send('GET')).headers['etag'], 'bare');
});

const PARTS: readonly (readonly [status: number, headers: Record<string, string>])[] = [
  [206, {}],
  [206, { 'content-range': 'bytes 0-3/40' }],
  [206, { 'content-type': 'multipart/byteranges; boundary=b' }],
  [200, { 'content-range': 'bytes 0-3/40' }],
  [200, { 'content-range': 'chars 0-3/40' }],
  [200, { 'content-range': 'Bytes=0-3' }],
  [200, { 'content-type': ' MULTIPART/ByteRanges; boundary=b' }],
  [200, { 'content-type': 'multipart/x-byteranges; boundary=b' }],
  [404, { 'content-range': 'bytes 4-7/40' }],
  [416, { 'content-range': 'bytes */40' }],
];
for (const [status, headers] of PARTS) {
  test(`a ${status} with ${JSON.stringify(headers)} that nobody asked for fails before a byte of it is released`, async () => {
    respond = (response) => response.writeHead(status, headers).end('half');
    const use = start('GET', [['X-Part', '0-3']]);
    use.body.on('error', () => undefined);
    assert.equal(await failureOf(use), 'partial');
    const { ended, bytesOut } = await use.result;
    assert.deepEqual([ended, bytesOut], ['failed', 0]);
  });
}

test('a page of whole items is not a part of a representation', async () => {
  for (const [status, range] of [
    [200, '0-24/319'],
    [206, '0-24/319'],
    [200, '*/0'],
    [200, '0-1/*'],
  ] as const) {
    respond = (response) => response.writeHead(status, { 'content-range': range }).end('[]');
    const page = await send('GET');
    assert.deepEqual([page.status, page.headers['content-range'], page.body], [status, range, '[]']);
  }
});
