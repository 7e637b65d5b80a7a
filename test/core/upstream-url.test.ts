// The grammar of upstream URLs: what two parsers could read differently is rejected.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/engine/errors.ts';
import { parseField } from '../../src/engine/field.ts';
import { PURPOSE, parseUrl, requestHeaders } from '../../src/vault/use/upstream-url.ts';
import { refusal } from './refusals.ts';

const accepted: readonly (readonly [string, object])[] = [
  [
    'https://api.openai.com/v1/models',
    { scheme: 'https', host: 'api.openai.com', port: 443, path: '/v1/models', query: '' },
  ],
  ['https://api.example.com', { scheme: 'https', host: 'api.example.com', port: 443, path: '/', query: '' }],
  ['https://api.example.com?a=1', { scheme: 'https', host: 'api.example.com', port: 443, path: '/', query: '?a=1' }],
  ['http://127.0.0.1:8080/a', { scheme: 'http', host: '127.0.0.1', port: 8080, path: '/a', query: '' }],
  ['https://[2001:db8::1]:8443/a', { scheme: 'https', host: '[2001:db8::1]', port: 8443, path: '/a', query: '' }],
  [
    'https://gitlab.example.com/api/v4/projects/group%2Fproject?page=2&q=%C4%81',
    {
      scheme: 'https',
      host: 'gitlab.example.com',
      port: 443,
      path: '/api/v4/projects/group%2Fproject',
      query: '?page=2&q=%C4%81',
    },
  ],
];
const rejected: readonly string[] = [
  '',
  '/v1/models',
  '//api.example.com/',
  'ftp://api.example.com/',
  'HTTPS://api.example.com/',
  'https:/api.example.com/',
  'https://user@api.example.com/',
  'https://user:password@api.example.com/',
  'https://api.example.com\\@other.example.com/',
  'https://api.example.com#@other.example.com/',
  'https://API.example.com/',
  'https://api.example.com./',
  'https://api..example.com/',
  'https://-api.example.com/',
  'https://api.example.com:0/',
  'https://api.example.com:00443/',
  'https://api.example.com:65536/',
  'https://api.example.com:/',
  'https://0x7f000001/',
  'https://2130706433/',
  'https://0177.0.0.1/',
  'https://127.1/',
  'https://256.0.0.1/',
  'https://127.0.0.0x1/',
  'https://[fe80::1%25eth0]/',
  'https://[::1/',
  'https://bücher.example/',
  'https://api.example.com/a b',
  'https://api.example.com/a\tb',
  'https://api.example.com/\r\nHost: other',
  'https://api.example.com/a#b',
  'https://api.example.com/a\\b',
  'https://api.example.com/a%5Cb',
  'https://api.example.com/a%0Ab',
  'https://api.example.com/a%00',
  'https://api.example.com/%zz',
  'https://api.example.com/%',
  'https://api.example.com//v1/models',
  'https://api.example.com/v1//models',
  'https://api.example.com/v1/../admin',
  'https://api.example.com/v1/./admin',
  'https://api.example.com/v1/..',
  'https://api.example.com/v1/%2e%2e/admin',
  'https://api.example.com/v1/.%2E/admin',
  'https://api.example.com/v1/%2e%2e%2fadmin',
  'https://api.example.com/v1/%252e%252e/admin',
  'https://api.example.com/v1/..;/admin',
  `https://api.example.com/${'a'.repeat(8192)}`,
];
test('what servers could read differently is rejected without an echo', () => {
  for (const url of rejected)
    assert.match(
      refusal('url', () => parseUrl(url), url),
      /^url: (must|may)/,
    );
});

test('an accepted URL is read by URL as it was decided', () => {
  for (const [url, parts] of accepted) {
    assert.deepEqual(parseUrl(url), parts);
    const { scheme, host, port, path, query } = parseUrl(url);
    const parsed = new URL(url);
    assert.equal(parsed.protocol, `${scheme}:`);
    assert.equal(parsed.hostname, host);
    assert.equal(parsed.port === '' ? { https: 443, http: 80 }[scheme] : Number(parsed.port), port);
    assert.equal(parsed.pathname + parsed.search, path + query);
  }
});

// The grammars of a use's purpose and headers. SOURCE: docs/api.md, "Brokered use".

function rejects(field: string, act: () => unknown): void {
  assert.throws(act, (error: unknown) => {
    assert.ok(error instanceof ApiError && error.code === 'INVALID_REQUEST');
    assert.match(error.message, new RegExp(`^${field}: (?:must have|must be|has an invalid)`));
    // Neither a name nor a value of the request is repeated.
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
}

test('a purpose is 1 to 200 code points without control characters', () => {
  for (const text of ['a', 'weekly report „März“', '😀'.repeat(200)])
    assert.equal(PURPOSE.parse(text, 'purpose'), text);
  for (const text of ['', 'a\u0000', 'secret\n', '\u001b[2J', 'a\u007f', '\u0085', '😀'.repeat(201), '\ud83d']) {
    rejects('purpose', () => PURPOSE.parse(text, 'purpose'));
  }
});

test('a header has a token as its name, and Latin-1 without control characters as its value', () => {
  const headers = { accept: '*/*', "x-a!#$%&'*+.^_`|~9": '\tü', 'x-empty': '' };
  const parse = (given: object) => parseField(requestHeaders, given, 'headers');
  assert.deepEqual(parse(headers), Object.entries(headers));
  for (const name of ['', 'a b', 'a:', 'a\r\nsecret', 'ü', 'a'.repeat(257)]) {
    rejects('headers', () => parse({ [name]: 'v' }));
  }
  for (const value of ['secret\r\nx: y', 'a\u0000', '„', '\u007f', 'a'.repeat(16_385)]) {
    rejects('headers', () => parse({ a: value }));
  }
});
