// The output of real libraries for four kinds of values is masked. test/vectors/encoders-v1.json contains the texts,
// written once by Python, Go, Java, Perl and Node, and by the rules of further libraries. Each has the length of the
// text that the library writes around an empty value.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { HELD_BYTES } from '../../src/broker/redaction.ts';
import { createMasking } from '../../src/masking/masking.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';

interface Vectors {
  readonly values: Readonly<Record<string, string>>;
  readonly texts: Readonly<Record<string, Readonly<Record<string, readonly [text: string, otherLength: number]>>>>;
}

const FILE = path.join(import.meta.dirname, '../vectors/encoders-v1.json');
const { values, texts }: Vectors = JSON.parse(readFileSync(FILE, 'utf8'));
/** The digits of base64 that a value shares with its neighbours, as hex, and the last line break of a PEM, escaped. */
const MAX_MORE_LENGTH = { pem: 10, others: 7 };
const MIN_ENCODERS = 90;

const maskings = new Map(
  Object.entries(values).map(([kind, value]) => [kind, createMasking([[kind, new Secret(value)]])] as const),
);

function mask(kind: string, bytes: Buffer, windowBytes?: number): string {
  const masker = maskings.get(kind)?.masker(windowBytes) ?? assert.fail(kind);
  return Buffer.concat([masker.write(bytes), masker.end()]).toString('latin1');
}

test(`values are masked as ${Object.keys(texts).length} encoders write them`, () => {
  assert.ok(Object.keys(texts).length >= MIN_ENCODERS);
  for (const [encoder, byKind] of Object.entries(texts)) {
    const charset = /utf-(?:16|32)/.test(encoder) ? 'latin1' : 'utf8';
    for (const [kind, [text, otherLength]] of Object.entries(byKind)) {
      const more = kind === 'pem' ? MAX_MORE_LENGTH.pem : MAX_MORE_LENGTH.others;
      for (const windowBytes of [undefined, HELD_BYTES]) {
        const masked = mask(kind, Buffer.from(text, charset), windowBytes);
        const rest = masked.replaceAll('[secret]', '');
        assert.ok(masked.includes('[secret]') && rest.length <= otherLength + more, `${encoder}: ${masked}`);
      }
    }
  }
});

test('a client secret of OAuth is masked in a Basic header, where it is escaped before base64', () => {
  for (const [kind, value] of Object.entries(values)) {
    if (kind === 'pem') continue;
    const loose = encodeURIComponent(value);
    const strict = loose.replaceAll(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
    for (const secret of [loose, strict])
      for (const id of ['a', 'app', 'my-app']) {
        const masked = mask(kind, Buffer.from(Buffer.from(`${id}:${secret}`).toString('base64')));
        assert.match(masked, /^.{0,12}\[secret\].{0,4}$/, `${kind}: ${masked}`);
      }
  }
});

test('a value that contains escapes is masked as it is, after anything, and as encoders write it', () => {
  for (const value of [
    '%41%42%43%44',
    'a\\nb\\u0041',
    '&amp;&#65;&lt;x',
    '=3D=0D=41',
    "''\"\"''",
    '41424344',
    '+AH4-+-',
  ]) {
    const masking = createMasking([['v', new Secret(value)]]);
    for (const text of [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)])
      for (const before of ['key=', '"', 'a\\ ', '%', '&', '4', '']) {
        const masker = masking.masker();
        const out = Buffer.concat([masker.write(Buffer.from(`${before}${text}.`)), masker.end()]).toString();
        assert.match(out, /^.{0,4}\[secret\]\.$/, `${before}${text}`);
      }
  }
});
