// Strict JSON: unambiguous bodies, no duplicate keys, bounded depth, valid UTF-8. SOURCE: docs/decisions.md,
// "Requests"; CVE-2025-6203, -12044, -59043.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertRejected } from '../kit/responses.ts';
import { share, startFixture } from './fixture.ts';

const CREDENTIALS = '/api/v1/credentials';
const fixture = await startFixture({ after });
const post = (body: string | Uint8Array, target = CREDENTIALS) => ({ method: 'POST', target, body });

const bytes = (...parts: readonly (string | readonly number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))));

// The expected message: it shows that the body was rejected for its own defect.
const SYNTAX = /^body: must be JSON$/;
const UTF8 = /^body: must be UTF-8$/;
const TWICE = /^body: must not contain a key twice$/;
const KEY = /^body: must not contain the keys __proto__, constructor and prototype$/;
const DEPTH = /^body: must be at most \d+ levels deep$/;
const TOKENS = /^body: must contain at most \d+ tokens$/;
const CONTAINERS = /^body: must contain at most \d+ objects and arrays$/;
const KEYS = /^body: must contain at most \d+ keys per object$/;
const LONG = /^body: must not contain a (?:key|number|string) over \d+ characters$/;
const SCHEMA = /^(?:body|path|value|description): /;

/** Each would store `open/json` if the parser were lenient. */
const NOT_JSON: Readonly<Record<string, readonly [rule: RegExp, body: string | Uint8Array]>> = {
  'nothing but space': [SYNTAX, ' \n '],
  'an unfinished object': [SYNTAX, '{"path":"open/json","value":"v"'],
  'a comma too many': [SYNTAX, '{"path":"open/json","value":"v",}'],
  'a comment': [SYNTAX, '{"path":"open/json",/* */"value":"v"}'],
  'single quotes': [SYNTAX, "{'path':'open/json','value':'v'}"],
  'keys without quotes': [SYNTAX, '{path:"open/json",value:"v"}'],
  'something behind it': [SYNTAX, '{"path":"open/json","value":"v"}x'],
  'another object behind it': [SYNTAX, '{"path":"open/json","value":"v"}{"path":"open/json","value":"v"}'],
  'a zero byte behind it': [SYNTAX, '{"path":"open/json","value":"v"}\u0000'],
  'a byte order mark': [SYNTAX, '\ufeff{"path":"open/json","value":"v"}'],
  'a line end in a string': [SYNTAX, '{"path":"open/json","value":"a\nb"}'],
  'a tab in a string': [SYNTAX, '{"path":"open/json","value":"a\tb"}'],
  'a zero byte in a string': [SYNTAX, '{"path":"open/json","value":"a\u0000b"}'],
  'an unknown escape': [SYNTAX, '{"path":"open/json","value":"\\x41"}'],
  'a short escape': [SYNTAX, '{"path":"open/json","value":"\\u004"}'],
  'a space that JSON has not': [SYNTAX, '{\u00a0"path":"open/json","value":"v"}'],
  'an overlong slash': [UTF8, bytes('{"path":"open', [0xc0, 0xaf], 'json","value":"v"}')],
  'an overlong letter': [UTF8, bytes('{"path":"open/json","value":"', [0xe0, 0x81, 0xa1], '"}')],
  'half a character': [UTF8, bytes('{"path":"open/json","value":"', [0xc3], '"}')],
  'a surrogate in UTF-8': [UTF8, bytes('{"path":"open/json","value":"', [0xed, 0xa0, 0x80], '"}')],
  'a character beyond Unicode': [UTF8, bytes('{"path":"open/json","value":"', [0xf4, 0x90, 0x80, 0x80], '"}')],
  'the byte FF': [UTF8, bytes('{"path":"open/json","value":"', [0xff], '"}')],
  'UTF-16': [SYNTAX, Buffer.from('{"path":"open/json","value":"v"}', 'utf16le')],
  'UTF-16 with its mark': [UTF8, bytes([0xff, 0xfe], [...Buffer.from('{"path":"open/json","value":"v"}', 'utf16le')])],
  'a compressed body': [UTF8, bytes([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 3])],
  'half a surrogate pair': [SCHEMA, '{"path":"open/json","value":"\\ud800"}'],
  'the other half': [SCHEMA, '{"path":"open/json","value":"\\udc00\\ud800"}'],
  'half of one in a description': [SCHEMA, '{"path":"open/json","value":"v","description":"\\udfff"}'],
  'a key twice': [TWICE, '{"path":"open/json","value":"v","path":"open/json"}'],
  'a key twice, once in escapes': [TWICE, '{"path":"open/json","value":"v","\\u0070ath":"open/json"}'],
  'a key twice, all in escapes': [TWICE, '{"path":"open/json","\\u0076\\u0061lue":"v","valu\\u0065":"v"}'],
  'a key twice, a space before a colon': [TWICE, '{"path":"open/json","value":"v","value" \r\n\t:"w"}'],
  'a key twice, deep within': [TWICE, '{"path":"open/json","value":"v","description":{"a":1,"a":2}}'],
  'a key twice in a list': [TWICE, '[{"a":1,"a":2}]'],
  'the key __proto__': [KEY, '{"path":"open/json","value":"v","__proto__":{"type":"x"}}'],
  '__proto__ in escapes': [KEY, '{"path":"open/json","value":"v","\\u005f_proto\\u005f_":{"type":"x"}}'],
  '__proto__ alone': [KEY, '{"__proto__":{"path":"open/json","value":"v"}}'],
  'the key constructor': [KEY, '{"path":"open/json","value":"v","constructor":{"prototype":{"polluted":true}}}'],
  'constructor within': [KEY, '{"path":"open/json","value":"v","description":[{"constructor":1}]}'],
  'the key prototype': [KEY, '{"path":"open/json","value":"v","prototype":{}}'],
  'a field of every object': [SCHEMA, '{"path":"open/json","value":"v","toString":"x"}'],
  'the field hasOwnProperty': [SCHEMA, '{"path":"open/json","value":"v","hasOwnProperty":true}'],
  'a field without a name': [SCHEMA, '{"path":"open/json","value":"v","":""}'],
  'a field in another case': [SCHEMA, '{"Path":"open/json","value":"v"}'],
  'a list of it': [SCHEMA, '[{"path":"open/json","value":"v"}]'],
  'a string of it': [SCHEMA, '"{\\"path\\":\\"open/json\\",\\"value\\":\\"v\\"}"'],
  'a number': [SCHEMA, '1'],
  true: [SCHEMA, 'true'],
  null: [SCHEMA, 'null'],
  'a string': [SCHEMA, '"path"'],
  NaN: [SYNTAX, 'NaN'],
  Infinity: [SYNTAX, 'Infinity'],
  undefined: [SYNTAX, 'undefined'],
  '10,000 lists in one another': [DEPTH, '['.repeat(10_000) + ']'.repeat(10_000)],
  '10,000 lists that never end': [DEPTH, '['.repeat(10_000)],
  '10,000 objects in one another': [DEPTH, `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
  'depth within a field': [DEPTH, `{"path":"open/json","value":"v","description":${'['.repeat(9)}${']'.repeat(9)}}`],
  '100,000 fields': [
    KEYS,
    `{"path":"open/json","value":"v",${Array.from({ length: 100_000 }, (_, n) => `"f${n}":0`).join()}}`,
  ],
  '65 fields': [KEYS, `{${Array.from({ length: 65 }, (_, n) => `"f${n}":0`).join()}}`],
  '64 fields': [SCHEMA, `{${Array.from({ length: 64 }, (_, n) => `"f${n}":0`).join()}}`],
  '100,000 objects': [CONTAINERS, `[${'{},'.repeat(100_000)}{}]`],
  '100,000 lists': [CONTAINERS, `{"path":"open/json","value":[${'[],'.repeat(100_000)}[]]}`],
  '65 objects and lists': [CONTAINERS, `[${'{},'.repeat(63)}[]]`],
  '100,000 values': [TOKENS, `{"path":"open/json","value":[${'0,'.repeat(100_000)}0]}`],
  'a key of a million characters': [LONG, `{"path":"open/json","value":"v","${'k'.repeat(1_000_000)}":0}`],
  'a string of a million characters': [LONG, `{"path":"open/json","value":"${'v'.repeat(1_000_000)}"}`],
  'a number of a million digits': [LONG, `{"path":"open/json","value":${'1'.repeat(1_000_000)}}`],
  'a million spaces and no object': [SYNTAX, ' '.repeat(1_000_000)],
  'a million quotes': [TOKENS, '"'.repeat(1_000_001)],
  'a million backslashes': [SYNTAX, `{"${'\\'.repeat(1_000_000)}`],
};

test('a body that is not strict JSON is rejected for its own defect', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [what, [rule, body]] of Object.entries(NOT_JSON)) {
      assert.match(assertRejected(await fixture.ask(post(body)), 'INVALID_REQUEST'), rule, what);
      assert.deepEqual(Object.keys(Object.prototype), [], what);
    }
  }));

test('an unauthenticated caller gets the same errors at /auth/challenge', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [what, [, body]] of share(Object.entries(NOT_JSON), 0, 5)) {
      const code = await fixture.codeOf({ ...post(body, '/auth/challenge'), token: null });
      // Bodies over the limit for unauthenticated callers are not parsed.
      const isTooLong = Buffer.byteLength(body) > 32 * 1024;
      assert.equal(code, isTooLong ? 'PAYLOAD_TOO_LARGE' : 'INVALID_REQUEST', what);
    }
  }));

test('no body is read for a caller without a token', () =>
  fixture.assertUnchangedBy(async () => {
    assert.equal(await fixture.codeOf({ ...post('{'), token: null }), 'UNAUTHENTICATED');
  }));

test('a body of 2 MiB is read, one byte more is 413, and a fully escaped value of 256 KiB fits', async () => {
  const value = '\\u0061'.repeat(262_144);
  assert.equal(await fixture.codeOf(post(`{"path":"open/large","value":"${value}"}`)), '201');
  await fixture.assertUnchangedBy(async () => {
    assert.equal(await fixture.codeOf(post(`{"path":"open/larger","value":"${value}a"}`)), 'INVALID_REQUEST');
    const [start, end] = ['{"path":"open/spaced","value":""', '}'];
    const filled = (size: number) => start + ' '.repeat(size - start.length - end.length) + end;
    assert.equal(await fixture.codeOf(post(filled(2 * 1024 * 1024))), 'INVALID_REQUEST');
    assert.equal(await fixture.codeOf(post(filled(2 * 1024 * 1024 + 1))), 'PAYLOAD_TOO_LARGE');
  });
});

test('every string that strict JSON allows is stored byte for byte', async () => {
  const value = '\u0000\u0001\t\r\n"\\/\u2028\u2029\u00e9\u{1f511}\ufeff\uffff__proto__ e\u0301';
  const path = 'open/exact';
  const escaped = JSON.stringify(value).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  for (const text of [JSON.stringify(value), escaped]) {
    assert.equal(await fixture.codeOf(post(` {\t"path" : "${path}",\r\n"value":${text} } `)), '201');
    const answer = await fixture.service.admin.get(`${CREDENTIALS}/${path}`);
    assert.equal(answer.body.data.value, value);
  }
});
