// The cost of matching is bounded for every value and every stream, and ordinary text is left as it is.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { createMasking, type Masking } from '../../src/masking/masking.ts';
import { MAX_FULLY_MASKED_BYTES } from '../../src/masking/plain-forms.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { runs } from '../kit/property.ts';
import { scaled } from '../kit/scale.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const STREAM_BYTES = 4 * 1024;
const KIND_BYTES = scaled(50_000, 250_000);
/** Limit of the steps that a state or a spelling takes for a byte. */
const MAX_STEPS = 60;
/** Limit of the states for a byte of the value. */
const MAX_STATES = 30;
const MARKS = `!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~`;
const VALUES = {
  key: 'skT1hXkQ2mWz7Lr4Bv8Ny3Hc6Fd5Gj0Ps1Ue55xZ',
  base64: 'T1h+XkQ2mWz7Lr4/Bv8Ny3Hc6Fd5+Gj0Ps1Ue55xZw==',
  password: `pA1${MARKS}9zQw7`,
  pem: `-----BEGIN PRIVATE KEY-----\n${'MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n'.repeat(3)}-----END PRIVATE KEY-----\n`,
};

const maskingOf = (value: string): Masking => createMasking([['v', new Secret(value)]]);
const filled = (text: string, length: number): string => text.repeat(Math.ceil(length / text.length)).slice(0, length);

test('steps for a byte are bounded, whatever value and stream contain', () => {
  const units = ['a', '%25', MARKS, '\\', '&amp;', `"'`, '=3D', '+-', '%', '{{', 'ab\n'];
  const streams = ['\\', '%', '%25', '&', '&amp;', '=', 'a', MARKS, '\\u005c', '\\\\u005c', '"', "'", '\n', '&#0000'];
  const more = ['\x1b[', '+', '\\1', '%5c', '\0', '%255c', '&#x5c;', '_x005c_', 'a\n', '\\\\\\"', '`^', '~0'];
  for (const unit of units) {
    const value = filled(unit, MAX_FULLY_MASKED_BYTES);
    const masking = maskingOf(value);
    assert.ok(masking.states <= MAX_STATES * value.length, unit);
    for (const stream of [...streams, ...more, unit, value]) {
      const masker = masking.masker();
      masker.write(Buffer.from(filled(stream, STREAM_BYTES)));
      assert.ok(masker.steps <= MAX_STEPS * STREAM_BYTES, `${unit}, ${stream}: ${masker.steps / STREAM_BYTES} steps`);
    }
  }
});

/** English as a page of HTML. */
const asPage = (text: string): string =>
  `<!doctype html>\n<html><body class="page">\n${text
    .split('\n\n')
    .map(
      (part, at) =>
        `<p id="p-${at}" style="margin: 0 1em">${part.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</p>`,
    )
    .join('\n<hr />\n')}\n</body></html>\n`;

/** JSON, HTML, code and English. */
function ordinaryTexts(): Buffer {
  const read = (...patterns: readonly string[]): string[] =>
    patterns
      .flatMap((pattern) => globSync(pattern, { cwd: ROOT }).toSorted())
      .map((file) => readFileSync(path.join(ROOT, file), 'utf8'));
  const english = read('docs/**/*.md');
  const kinds = [
    read('package-lock.json', 'docs/*.json', 'node_modules/*/package.json'),
    read('console/**/*.html', 'node_modules/*/*.html').concat(english.map(asPage)),
    read('src/**/*.ts'),
    english,
  ].map((texts) => Buffer.from(texts.join('\n')).subarray(0, KIND_BYTES));
  for (const text of kinds) assert.equal(text.length, KIND_BYTES);
  return Buffer.concat(kinds);
}

test(`${4 * KIND_BYTES} bytes of JSON, pages, code and English are left as they are`, () => {
  const text = ordinaryTexts();
  for (const [name, value] of Object.entries(VALUES)) {
    const masker = maskingOf(value).masker();
    assert.ok(Buffer.concat([masker.write(text), masker.end()]).equals(text), name);
    assert.equal(masker.maskCount, 0);
  }
});

test('fuzzed: what is skipped, and where the stream is divided, changes nothing', () => {
  const atoms =
    `a b + / = " ' \\ & # % 2 4 1 x u 0 n ; amp; lt; plus; { } $ ^ \` ~ _ [ m data: > \\u002b %2B &#43; =2B \\x61 \\n %61 %25 5C é \\u00e9 &eacute; - ! . *`
      .split(' ')
      .concat('\n', '\r\n', '\0', '\x1b[31m', '\x1b', ' ');
  const atom = fc.constantFrom(...atoms);
  const value = fc.array(atom, { minLength: 3, maxLength: 20 }).map((all) => all.join(''));
  const cases = fc.record({
    values: fc.array(value, { minLength: 1, maxLength: 3 }),
    pieces: fc.array(fc.oneof(atom, fc.nat(2), fc.tuple(fc.nat(2), fc.nat(20))), { maxLength: 40 }),
    cut: fc.nat(200),
    windowBytes: fc.constantFrom(undefined, 24),
  });
  fc.assert(
    fc.property(cases, ({ values, pieces, cut, windowBytes }) => {
      const masking = createMasking(values.map((each) => ['v', new Secret(each)] as const));
      const valueAt = (at: number): string => values[at % values.length] ?? '';
      const text = pieces.map((piece) => {
        if (typeof piece === 'string') return piece;
        return typeof piece === 'number' ? valueAt(piece) : valueAt(piece[0]).slice(piece[1] % 9);
      });
      const bytes = Buffer.from(text.join(''));
      const run = (cuts: readonly number[]): string => {
        const masker = masking.masker(windowBytes);
        const ends = [...cuts, bytes.length];
        const parts = ends.map((end, at) => masker.write(bytes.subarray(ends[at - 1] ?? 0, end)));
        const text = Buffer.concat([...parts, masker.end()]).toString('latin1');
        // The next run uses the same one.
        masking.reuse(masker);
        return text;
      };
      const whole = run([]);
      assert.equal(run(Array.from(bytes.keys())), whole);
      assert.equal(run([Math.min(cut, bytes.length)]), whole);
      if (windowBytes !== undefined) return;
      const masker = masking.masker();
      for (let round = 0; round < 2; round++) assert.equal(Buffer.from(masker.text(bytes)).toString('latin1'), whole);
    }),
    runs(80, 20_000),
  );
});
