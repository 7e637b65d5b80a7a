// The root key file, strict base64, tokens, and new ids and keys.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeStrictBase64, newRootKey, requestIds, timingSafeEqualText } from '../../src/crypto/primitives.ts';
import { hashToken, newToken } from '../../src/crypto/tokens.ts';
import { parseRootKey } from '../../src/crypto/vault-keys.ts';
import { runs, wellFormedText } from '../kit/property.ts';

test('a root key file contains 32 bytes as base64 on one line, and nothing else', () => {
  const key = Buffer.from(Uint8Array.from({ length: 32 }, (_, i) => i));
  const text = key.toString('base64');
  for (const good of [text, `${text}\n`, `${text}\r\n`]) assert.deepEqual(parseRootKey(good), key);
  const short = key.subarray(0, 31).toString('base64');
  const long = Buffer.concat([key, key]).toString('base64');
  const rawKey = key.toString('latin1');
  for (const bad of ['', '\n', ` ${text}`, `${text} `, `${text}\n\n`, `${text}\n${text}`, short, long, rawKey]) {
    assert.equal(parseRootKey(bad), null, JSON.stringify(bad));
  }
  assert.equal(parseRootKey(key.toString('hex')), null);
});

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Applies the rules of RFC 4648, sections 3.5 and 4, without a decoder. */
function isStrictBase64(text: string): boolean {
  const [, body = '', padding = ''] = /^([A-Za-z0-9+/]*)(={0,2})$/.exec(text) ?? [];
  if (body + padding !== text || text.length % 4 !== 0) return false;
  const loose = ALPHABET.indexOf(body.at(-1) ?? 'A');
  return padding === '' || (padding === '=' ? loose % 4 === 0 : loose % 16 === 0);
}

test('base64 is accepted in its canonical spelling only', () => {
  const nearly = fc.string({ unit: fc.constantFrom(...ALPHABET, '=', '-', '_', '\n', ' ', 'é'), maxLength: 12 });
  fc.assert(
    fc.property(fc.oneof(nearly, fc.base64String()), (text) => {
      assert.equal(decodeStrictBase64(text) !== null, isStrictBase64(text), JSON.stringify(text));
    }),
    runs(200, 2000),
  );
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      assert.deepEqual(decodeStrictBase64(Buffer.from(bytes).toString('base64')), Buffer.from(bytes));
    }),
  );
});

for (const text of [
  'AA',
  'AA=',
  'AB==',
  'AAB=',
  'AA==\n',
  ' AA==',
  'A A=',
  'AA===',
  '__8=',
  '-w==',
  '=',
  'A',
  'AA==AA==',
]) {
  test(`base64 in another spelling is rejected: ${JSON.stringify(text)}`, () =>
    assert.equal(decodeStrictBase64(text), null));
}

for (const prefix of ['lha_', 'lhs_'] as const) {
  test(`a token ${prefix} has 256 bits and never repeats`, () => {
    const tokens = Array.from({ length: 2000 }, () => newToken(prefix).reveal());
    assert.equal(new Set(tokens).size, 2000);
    for (const token of tokens) {
      assert.ok(token.startsWith(prefix));
      const bytes = Buffer.from(token.slice(4), 'base64url');
      assert.equal(bytes.length, 32);
      assert.equal(bytes.toString('base64url'), token.slice(4));
    }
  });
}

test('a token is not shown when it is printed, and its hash covers the whole token', () => {
  const token = newToken('lhs_');
  assert.equal(`${token} ${JSON.stringify({ token })}`, '[secret] {"token":"[secret]"}');
  const expected = createHash('sha256').update(token.reveal()).digest('base64');
  assert.equal(hashToken(token.reveal()), expected);
  assert.equal(timingSafeEqualText(hashToken(token.reveal()), expected), true);
  assert.equal(timingSafeEqualText(hashToken(token.reveal().slice(4)), expected), false);
});

test('texts are equal only byte for byte', () => {
  fc.assert(
    fc.property(wellFormedText(), wellFormedText(), (a, b) => {
      assert.equal(timingSafeEqualText(a, a), true);
      assert.equal(timingSafeEqualText(a, b), a === b);
      assert.equal(timingSafeEqualText(a, `${a}\0`), false);
    }),
  );
});

test('a request id is eight random characters of its process and a number in base 36', () => {
  const [one, other] = [requestIds(), requestIds()];
  const ids = Array.from({ length: 37 }, one);
  const [first = ''] = ids;
  assert.match(first, /^[0-9a-f]{8}-1$/);
  assert.deepEqual(
    [ids[34], ids[35], ids[36]],
    ['-z', '-10', '-11'].map((end) => first.slice(0, 8) + end),
  );
  assert.notEqual(other().slice(0, 8), first.slice(0, 8));
});

test('a root key is 32 random bytes', () => {
  assert.equal(newRootKey().length, 32);
  assert.notDeepEqual(newRootKey(), newRootKey());
});
