// Bounds of values and descriptions, kept versions, and secrets that do not print.
// SOURCE: docs/decisions.md, "Credentials".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, inspect } from 'node:util';
import fc from 'fast-check';
import { parseDescription } from '../../src/core/names.ts';
import { type Credential, isKept, parseValue, Secret } from '../../src/vault/credentials/credential.ts';
import { anyText, runs } from '../kit/property.ts';
import { refusal } from './refusals.ts';

const MOST = 262_144;

const VALUES: readonly [what: string, value: string, isAccepted: boolean][] = [
  ['nothing', '', false],
  ['one byte', 'a', true],
  ['a NUL', '\u0000', true],
  ['blanks and line ends', ' \r\n\t\n', true],
  ['a byte order mark', '\ufeffa', true],
  ['decomposed letters', 'e\u0301', true],
  ['256 KiB of ASCII', 'a'.repeat(MOST), true],
  ['256 KiB of ASCII and a byte', 'a'.repeat(MOST + 1), false],
  ['256 KiB in characters of 2 bytes', 'é'.repeat(MOST / 2), true],
  ['256 KiB in characters of 2 bytes, and a byte', `${'é'.repeat(MOST / 2)}a`, false],
  ['256 KiB in characters of 3 bytes', `${'€'.repeat(87_381)}a`, true],
  ['256 KiB in characters of 3 bytes, and a byte', `${'€'.repeat(87_381)}é`, false],
  ['256 KiB in characters of 4 bytes', '🔑'.repeat(MOST / 4), true],
  ['256 KiB in characters of 4 bytes, and a byte', `${'🔑'.repeat(MOST / 4)}a`, false],
  ['256 KiB in characters of the outermost halves of pairs', '\u{103ff}'.repeat(MOST / 4), true],
  ['the last character before 2 bytes', '\u007f'.repeat(MOST), true],
  ['the first character of 2 bytes', '\u0080'.repeat(MOST / 2 + 1), false],
  ['the first character of 3 bytes', '\u0800'.repeat(87_382), false],
  ['the last characters before the surrogates', '\ud7ff'.repeat(87_382), false],
  ['the first characters after the surrogates', '\ue000'.repeat(87_382), false],
  ['the first half of a pair', 'a\ud83d', false],
  ['the second half of a pair', '\udd11a', false],
  ['a pair the wrong way round', '\udd11\ud83d', false],
];

test('a value is up to 256 KiB of UTF-8', () => {
  for (const [what, value, isAccepted] of VALUES) {
    if (isAccepted) assert.equal(parseValue(value).reveal(), value, what);
    else refusal('value', () => parseValue(value), what);
  }
});

test('a value is accepted if and only if it is 1 to 262144 bytes of well-formed UTF-8', () => {
  const units = fc.oneof(anyText(), fc.constantFrom('\ud83d', '\udd11', '€', 'é', ''));
  const paddings = fc.constantFrom('', 'a'.repeat(MOST - 3), '🔑'.repeat(MOST / 4 - 1), '€'.repeat(87_380));
  fc.assert(
    fc.property(units, paddings, (text, padding) => {
      const value = padding + text;
      const bytes = Buffer.byteLength(value);
      if (value.isWellFormed() && bytes >= 1 && bytes <= MOST) assert.equal(parseValue(value).reveal(), value);
      else refusal('value', () => parseValue(value));
    }),
    runs(200),
  );
});

const DESCRIPTIONS: readonly [text: string, isAccepted: boolean][] = [
  ['', true],
  ['for the build, "quoted"\n', true],
  ['a'.repeat(1024), true],
  ['a'.repeat(1025), false],
  ['€'.repeat(1024), true],
  ['€'.repeat(1025), false],
  // A character is a character, in however many units it is written.
  ['🔑'.repeat(1024), true],
  ['🔑'.repeat(1025), false],
  ['\ud83d', false],
  ['\udd11a', false],
  // Every other control character is one that a store can hold.
  ['\u0001\t\u001f\u007f', true],
  ['\u0000', false],
  ['for the build\u0000', false],
];

test('a description is up to 1024 characters without NUL', () => {
  for (const [text, isAccepted] of DESCRIPTIONS) {
    if (isAccepted) assert.equal(parseDescription(text), text);
    else refusal('description', () => parseDescription(text), text);
  }
});

test('exactly the newest `versionsKept` versions are kept', () => {
  const credential = { version: 12 } as Credential;
  const kept = (versionsKept: number) =>
    Array.from({ length: 15 }, (_, index) => index - 1).filter((version) => isKept(version, credential, versionsKept));
  assert.deepEqual(kept(10), [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  assert.deepEqual(kept(1), [12]);
  assert.deepEqual(kept(20), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
});

test('a secret is not shown by any form of printing', () => {
  const secret = new Secret('hunter2');
  const inside = { secret, list: [secret], map: new Map([['key', secret]]) };
  const printed = [
    String(secret),
    `${secret}`,
    secret.toString(),
    JSON.stringify(secret),
    JSON.stringify(inside),
    inspect(secret),
    inspect(inside, { depth: 9, showHidden: true }),
    inspect(inside, { depth: 9, customInspect: false, showHidden: true, getters: true }),
    format('%s %o %O %j %d', secret, secret, secret, secret, secret),
    format(secret),
    new Error('with', { cause: secret }).stack ?? '',
    inspect(new Error('with', { cause: secret })),
    JSON.stringify({ ...secret }),
    JSON.stringify(Object.entries(secret)),
    JSON.stringify(Reflect.ownKeys(secret).map(String)),
    inspect(structuredClone(secret)),
  ].join('\n');
  assert.equal(printed.includes('hunter2'), false, printed);
  assert.equal(String(secret), '[secret]');
  assert.equal(JSON.stringify(secret), '"[secret]"');
  assert.equal(inspect(secret), '[secret]');
  assert.equal(secret.reveal(), 'hunter2');
});
