// The grammars of a use's purpose and headers. SOURCE: docs/api.md, "Brokered use".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/engine/errors.ts';
import { parseHeaders, parsePurpose } from '../../src/vault/use/upstream-url.ts';

function rejects(field: string, act: () => unknown): void {
  assert.throws(act, (error: unknown) => {
    assert.ok(error instanceof ApiError && error.code === 'INVALID_REQUEST');
    assert.match(error.message, new RegExp(`^${field}: must have|^${field}: must be`));
    // Neither a name nor a value of the request is repeated.
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
}

test('a purpose is 1 to 200 code points without control characters', () => {
  for (const text of ['a', 'weekly report „März“', '😀'.repeat(200)]) assert.equal(parsePurpose(text), text);
  for (const text of ['', 'a\u0000', 'secret\n', '\u001b[2J', 'a\u007f', '\u0085', '😀'.repeat(201), '\ud83d']) {
    rejects('purpose', () => parsePurpose(text));
  }
});

test('a header has a token as its name, and Latin-1 without control characters as its value', () => {
  const headers = { accept: '*/*', "x-a!#$%&'*+.^_`|~9": '\tü', 'x-empty': '' };
  assert.deepEqual(parseHeaders(headers), Object.entries(headers));
  for (const name of ['', 'a b', 'a:', 'a\r\nsecret', 'ü', 'a'.repeat(257)]) {
    rejects('headers', () => parseHeaders({ [name]: 'v' }));
  }
  for (const value of ['secret\r\nx: y', 'a\u0000', '„', '\u007f', 'a'.repeat(16_385)]) {
    rejects('headers', () => parseHeaders({ a: value }));
  }
});
