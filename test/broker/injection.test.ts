// Inject, never swap: nothing that the caller sent can carry authority to the upstream in place of the credential.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildRequest } from '../../src/broker/injection.ts';
import type { HeaderPairs, UpstreamRequestSpec } from '../../src/broker/protocol.ts';
import { UpstreamError } from '../../src/broker/protocol.ts';
import { SERVICES } from '../../src/vault/catalogue/catalogue.ts';
import { PLAIN_VALUE, specFor } from './upstream.ts';

const TARGET = { port: 443, caPem: 'ca' };
const build = (fields: Partial<UpstreamRequestSpec>) =>
  buildRequest(specFor(TARGET, { host: 'api.example.com', ...fields }));
/** The caller's headers that reach the upstream. */
const passed = (headers: HeaderPairs, fields: Partial<UpstreamRequestSpec> = {}): HeaderPairs => {
  const own = build({ ...fields, headers: [] }).headers.map(([name]) => name);
  return build({ ...fields, headers }).headers.filter(([name]) => !own.includes(name));
};
const isRejected = (fields: Partial<UpstreamRequestSpec>, failure = 'protocol'): void =>
  assert.throws(
    () => build(fields),
    (error) => error instanceof UpstreamError && error.failure === failure,
  );

const AUTHORITY = [
  'Authorization',
  'authorization',
  'AUTHORIZATION',
  'Proxy-Authorization',
  'X-Api-Key',
  'api-key',
  'API_KEY',
  'x-goog-api-key',
  'x_api_key',
  'Cookie',
  'Private-Token',
  'X-Auth-Token',
];
const CONNECTION = [
  'Host',
  'Forwarded',
  'Via',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X_Forwarded_Proto',
  'TE',
  'Trailer',
  'Upgrade',
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'Transfer-Encoding',
  'Content-Length',
  'Expect',
  'Accept-Encoding',
  'Sec-WebSocket-Key',
  'X-HTTP-Method-Override',
  'X-Original-URL',
  'X-Original-Method',
  'True-Client-IP',
  'CF-Connecting-IP',
  'X-Client-IP',
  'X_Client_IP',
  'X-Method',
];

test('authority confusion: no header of a caller that may have authority is sent', () => {
  for (const name of AUTHORITY) {
    assert.deepEqual(passed([[name, 'Bearer of-the-caller']]), [], name);
    const { headers } = build({ headers: [[name, 'Bearer of-the-caller']] });
    const bearers = headers.filter(([, value]) => value.startsWith('Bearer'));
    assert.deepEqual(bearers, [['Authorization', `Bearer ${PLAIN_VALUE}`]], name);
  }
});

test('hop-by-hop: no header of a caller about the connection or its route is sent', () => {
  for (const name of CONNECTION) {
    const texts = build({ headers: [[name, 'of-the-caller']] }).headers.map(([, value]) => value);
    assert.equal(texts.includes('of-the-caller'), false, name);
  }
});

const RANGES = [
  'Range',
  'If-Range',
  'Request-Range',
  'X-Ms-Range',
  'x_ms_range',
  'X-Range',
  'X-Ms-Source-Range',
  'Ranges',
  'X-Amz-Copy-Source-Range',
  'X-Goog-Copy-Source-Range',
  'X-Oss-Range-Behavior',
  'X-Byte-Range',
  'X-ByteRange',
  'XRange',
  'Range2',
  'Next-Range',
  'Unless-Modified-Range',
  'X-Ms-Range-Get-Content-Md5',
  'X.Range',
  'RANGE',
];
for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'QUERY']) {
  test(`ranges: no header of a ${method} that means a range is sent, whatever its name`, () => {
    assert.deepEqual(
      passed(
        RANGES.map((name) => [name, 'bytes=0-9'] as const),
        { method },
      ),
      [],
    );
  });
}

test('ranges: a part of an upload is described as it is, and other words that look like a range are not one', () => {
  const upload: HeaderPairs = [['Content-Range', 'bytes 0-9/20']];
  for (const method of ['PUT', 'POST', 'PATCH']) assert.deepEqual(passed(upload, { method, bodyLength: 10 }), upload);
  for (const method of ['GET', 'HEAD', 'DELETE', 'QUERY']) assert.deepEqual(passed(upload, { method }), []);
  const others: HeaderPairs = [
    ['X-Orange-Id', '1'],
    ['X-Arrangement', '2'],
    ['Upload-Offset', '3'],
  ];
  assert.deepEqual(passed(others), others);
});

test('hop-by-hop: a header that any Connection header names is not sent, and other headers are', () => {
  const headers: HeaderPairs = [
    ['Connection', 'close, X-One'],
    ['connection', ' x-two '],
    ['X-One', '1'],
    ['x_two', '2'],
    ['X-Three', '3'],
    ['Content-Type', 'text/plain'],
  ];
  assert.deepEqual(passed(headers), headers.slice(4));
});

test('hop-by-hop: naming our header in Connection does not remove the credential', () => {
  const { headers } = build({ headers: [['Connection', 'authorization, host, content-length']], method: 'POST' });
  assert.deepEqual(headers, [
    ['Host', 'api.example.com'],
    ['Accept-Encoding', 'identity'],
    ['Content-Length', '0'],
    ['Authorization', `Bearer ${PLAIN_VALUE}`],
  ]);
});

test('authority confusion: the headers of all services of the catalogue are removed whatever the placement is', () => {
  const names = SERVICES.flatMap(({ placement }) => (placement.kind === 'header' ? [placement.name ?? ''] : []));
  assert.equal(names.length > 4, true);
  assert.deepEqual(passed(names.map((name) => [name, 'mine'] as const)), []);
});

test("authority confusion: the placement's own header is removed in every spelling", () => {
  const placement = { kind: 'header', name: 'DD-Token', template: 'Token {value}!' } as const;
  const headers = ['DD-Token', 'dd-token', 'DD_TOKEN'].map((name) => [name, 'mine'] as const);
  assert.deepEqual(passed(headers, { placement }), []);
  assert.deepEqual(build({ placement, headers }).headers.at(-1), ['DD-Token', `Token ${PLAIN_VALUE}!`]);
});

test('a template inserts the value as it is, also with characters that a replacement pattern would expand', () => {
  const placement = { kind: 'header', name: 'K', template: '<{value}>' } as const;
  assert.deepEqual(build({ placement, value: "a$&b$'c" }).headers.at(-1), ['K', "<a$&b$'c>"]);
});

test('Basic has the value as password, or as user and password', () => {
  const of = (username: string | null, value: string) => build({ placement: { kind: 'basic', username }, value });
  assert.equal(of('ann', 'pä:ss').headers.at(-1)?.[1], `Basic ${Buffer.from('ann:pä:ss').toString('base64')}`);
  assert.equal(of(null, 'ann:pass').headers.at(-1)?.[1], `Basic ${Buffer.from('ann:pass').toString('base64')}`);
  isRejected({ placement: { kind: 'basic', username: 'a:b' } });
});

const QUERIES: readonly [sent: string, expected: string][] = [
  ['/v1', '/v1?key=V'],
  ['/v1?', '/v1?key=V'],
  ['/v1?a=1', '/v1?a=1&key=V'],
  ['/v1?key=mine&a=1&key=again', '/v1?a=1&key=V'],
  ['/v1?%6bey=mine&%6Bey=mine&k%65%79=mine', '/v1?key=V'],
  ['/v1?KEY=mine&Key', '/v1?key=V'],
  ['/v1?+key=mine&key%20=mine&key%00x=mine', '/v1?key=V'],
  ['/v1?key[]=mine&key%5B0%5D=mine', '/v1?key=V'],
  ['/v1?a=1;key=mine;b=2', '/v1?a=1;b=2&key=V'],
  ['/v1?monkey=1&keys=2&a=key=3', '/v1?monkey=1&keys=2&a=key=3&key=V'],
  ['/v1?a=%zz&b=%', '/v1?a=%zz&b=%&key=V'],
];
test("authority confusion: no parameter of the placement's name is sent", () => {
  for (const [path, expected] of QUERIES)
    assert.equal(build({ path, placement: { kind: 'query', name: 'key' }, value: 'V' }).path, expected);
});

test('a value in the query is encoded, and the name too', () => {
  const { path, headers } = build({ placement: { kind: 'query', name: 'a&b' }, value: 'x&y=z #?' });
  assert.equal(path, '/?a%26b=x%26y%3Dz%20%23%3F');
  assert.equal(JSON.stringify(headers).includes('x&y'), false);
});

for (const [name, character] of Object.entries({ CR: '\r', LF: '\n', NUL: '\0', DEL: '\x7f', wide: 'ł', Latin: 'é' })) {
  test(`smuggling: a value with ${name} is never sent in a header`, () => {
    const value = `abcd${character}X-Evil: 1`;
    isRejected({ value }, 'value');
    isRejected({ value, placement: { kind: 'header', name: 'K', template: '{value}' } }, 'value');
  });
}

test('smuggling: a method, a path or a header of the caller with other characters is rejected', () => {
  for (const method of ['', 'GET /evil', 'GET\r\n', 'CONNECT', 'TRACE', 'trace']) isRejected({ method });
  for (const path of ['', 'v1', '*', 'http://evil/', '/a b', '/a\r\nX: y', '/a\0', '/a#b', '/ä', '/\x7f'])
    isRejected({ path });
  for (const name of ['', 'X Y', 'X:', ':path', 'X\r\nY', 'Ä']) isRejected({ headers: [[name, '1']] });
  for (const value of ['a\r\nX: y', 'a\nb', 'a\0b', 'a\rb', '\u0142']) isRejected({ headers: [['X', value]] });
});

test('the length of the body is ours: chunked if it is unknown', () => {
  const framing = (bodyLength: number | null, method = 'POST') =>
    build({ bodyLength, method, headers: [['Content-Length', '99']] }).headers.filter(([name]) =>
      /content-length|transfer-encoding/i.test(name),
    );
  assert.deepEqual(framing(5), [['Content-Length', '5']]);
  assert.deepEqual(framing(0), [['Content-Length', '0']]);
  assert.deepEqual(framing(0, 'GET'), []);
  assert.deepEqual(framing(null), [['Transfer-Encoding', 'chunked']]);
});

test('Host has the port of the target unless it is the default', () => {
  assert.deepEqual(build({}).headers[0], ['Host', 'api.example.com']);
  assert.deepEqual(build({ port: 8443 }).headers[0], ['Host', 'api.example.com:8443']);
  assert.deepEqual(build({ port: 80, scheme: 'http' }).headers[0], ['Host', 'api.example.com']);
});

test('a WebSocket handshake has exactly the headers that it needs', () => {
  const headers: HeaderPairs = [
    ['Connection', 'Upgrade, X-Evil'],
    ['Upgrade', 'h2c'],
    ['X-Evil', '1'],
    ['Sec-WebSocket-Key', 'k'],
    ['Sec-WebSocket-Extensions', 'permessage-deflate'],
  ];
  assert.deepEqual(build({ isUpgrade: true, headers }).headers, [
    ['Host', 'api.example.com'],
    ['Sec-WebSocket-Key', 'k'],
    ['Accept-Encoding', 'identity'],
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
    ['Authorization', `Bearer ${PLAIN_VALUE}`],
  ]);
});
