// The masker: it finds values wherever the stream is split, and leaves everything else unchanged. encoders.test.ts and
// test/broker/redaction-splits.test.ts have the encodings.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { createMasking, type Masking } from '../../src/masking/masking.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { assertGrowth } from '../kit/growth.ts';
import { runs } from '../kit/property.ts';
import { maskText } from './mask-text.ts';

const maskingOf = (...values: string[]): Masking =>
  createMasking(values.map((value, at) => [`V${at}`, new Secret(value)] as const));
const mask = (value: string, text: string): string => maskText(maskingOf(value), text);

/** Splits the text at each position; null is a moment without output. */
function inPieces(masking: Masking, bytes: Buffer, cuts: readonly number[], isQuiet = false): Buffer {
  const masker = masking.masker();
  const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
  const out: Uint8Array[] = [];
  for (const [at, place] of places.entries()) {
    out.push(masker.write(bytes.subarray(place, places[at + 1] ?? bytes.length)));
    if (isQuiet) out.push(masker.release());
  }
  out.push(masker.end());
  return Buffer.concat(out);
}

test('a value is masked at any position, and the text around it is unchanged', () => {
  assert.equal(mask('hunter2', 'hunter2'), '[secret]');
  assert.equal(mask('hunter2', 'a hunter2, hunterhunter22 hunter'), 'a [secret], hunter[secret]2 hunter');
  assert.equal(mask('pässwörd', 'das pässwörd!'), 'das [secret]!');
});

test('overlapping values are masked as one, and no rest of either is shown', () => {
  const masking = maskingOf('abcdef', 'defghi', 'abcdefgh');
  assert.equal(maskText(masking, '-abcdefghi-'), '-[secret]-');
  assert.equal(maskText(masking, '-abcdefgh-'), '-[secret]-');
  assert.equal(maskText(masking, '-abcdef-defghi-'), '-[secret]-[secret]-');
  assert.equal(maskText(maskingOf('abcd', 'zzabcdyyyy'), 'zzabcdyyy-zzabcdyyyy'), 'zz[secret]yyy-[secret]');
});

test('a value inside a longer text is masked in base64, at each of the three offsets, in both alphabets', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 7 }),
      fc.uint8Array({ maxLength: 7 }),
      fc.boolean(),
      (before, after, isUrl) => {
        const value = 'c0rrect-h0rse~battery>staple?';
        const text = Buffer.concat([before, Buffer.from(value), after]).toString(isUrl ? 'base64url' : 'base64');
        const masked = mask(value, text);
        assert.match(masked, /^[\w+/=-]*\[secret\][\w+/=-]*$/);
        // At most one digit at either end is shared with the neighbouring text.
        const shown = masked.length - '[secret]'.length;
        const digits = Math.ceil((before.length * 4) / 3) + Math.ceil((after.length * 4) / 3);
        assert.equal(shown <= digits + 4, true, masked);
      },
    ),
    runs(60, 300),
  );
});

const PEM = `-----BEGIN PRIVATE KEY-----\n${'MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n'.repeat(3)}Zm9vYmFyYmF6\n-----END PRIVATE KEY-----\n`;

test('a value of several lines is masked as a whole, with terminal line endings, by line, and in wrapped base64', () => {
  assert.equal(mask(PEM, `<${PEM}>`), '<[secret]\n>');
  assert.equal(mask(PEM, `<${PEM.replaceAll('\n', '\r\n')}>`), '<[secret]\r\n>');
  assert.equal(mask(PEM, `<${PEM.split('\n')[1]}>`), '<[secret]>');
  assert.equal(mask(PEM, `<${JSON.stringify(PEM)}>`), '<"[secret]\\n">');
  const wrapped = Buffer.from(PEM).toString('base64').replaceAll(/.{76}/g, '$&\n');
  assert.equal(mask(PEM, `<${wrapped}>`), '<[secret]>');
  assert.equal(mask(PEM, '-----BEGIN PRIVATE KEY-----'), '-----BEGIN PRIVATE KEY-----');
});

test('a line break inside a short value prevents a match, and inside a long one it does not', () => {
  assert.equal(mask('1234', '1\n2\n3\n4\n'), '1\n2\n3\n4\n');
  assert.equal(mask('0123456789abcdefghij', '0123456789\r\nabcdefghij\n'), '[secret]\n');
  assert.equal(mask('bob\nhunter2\n', 'bob\r\nhunter2\r\n'), '[secret]\r\n');
  assert.equal(maskText(maskingOf('xxab12', 'ab12'), 'xx\nab12'), 'xx\n[secret]');
});

test('values under four bytes are not masked, and are named', () => {
  const masking = createMasking([
    ['PIN', new Secret('123')],
    ['LONG', new Secret('1234')],
    ['BREAKS', new Secret('\n\n\n\n\n')],
  ]);
  assert.deepEqual(masking.tooShort, ['PIN', 'BREAKS']);
  assert.equal(maskText(masking, '123 1234'), '123 [secret]');
});

/** Over few letters, so that values overlap, repeat and begin alike. */
const letters = (minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom('a', 'b', 'c', '\n'), { minLength, maxLength }).map((all) => all.join(''));
const secrets = fc.array(letters(4, 9), { minLength: 1, maxLength: 4 });
const cuts = fc.array(fc.nat(), { maxLength: 12 });

/** A slow reference implementation: masks each byte of each occurrence, and joins runs into one mask. */
function slowly(values: readonly string[], text: string): string {
  const covered = new Array<boolean>(text.length).fill(false);
  for (const value of values)
    for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + 1))
      covered.fill(true, at, at + value.length);
  return [...text].map((letter, at) => (covered[at] ? (covered[at - 1] ? '' : '[secret]') : letter)).join('');
}

test('fuzzed: the output is the same however the stream is split', () => {
  fc.assert(
    fc.property(secrets, letters(0, 80), cuts, (values, text, places) => {
      const masking = maskingOf(...values);
      assert.equal(inPieces(masking, Buffer.from(text), places).toString(), maskText(masking, text));
    }),
    runs(80, 3000),
  );
});

test('fuzzed: every occurrence is masked, and every other byte is output in order', () => {
  const plain = fc.array(fc.constantFrom('!', '?', '.'), { minLength: 4, maxLength: 7 }).map((all) => all.join(''));
  const texts = fc.array(fc.constantFrom('!', '?', '.', ' ', '\n'), { maxLength: 120 }).map((all) => all.join(''));
  fc.assert(
    fc.property(fc.array(plain, { minLength: 1, maxLength: 4 }), texts, cuts, (values, text, places) => {
      const masked = inPieces(maskingOf(...values), Buffer.from(text), places).toString();
      assert.equal(masked, slowly(values, text));
    }),
    runs(80, 3000),
  );
});

test('fuzzed: bytes without a match are unchanged', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (bytes, places) => {
      assert.deepEqual(
        inPieces(maskingOf('a value that random bytes are not'), Buffer.from(bytes), places),
        Buffer.from(bytes),
      );
    }),
    runs(40, 500),
  );
});

test('fuzzed: however often the stream is idle, no value is shown, and at most a quarter of its beginning', () => {
  const value = 'hunter2-correct-horse';
  const most = value.slice(0, Math.floor(value.length / 4));
  const others = [most, 'hunt', 'h', 'x', 'e', '\n'];
  const pieces = fc.array(fc.constantFrom(value, ...others), { maxLength: 12 });
  fc.assert(
    fc.property(pieces, cuts, (all, places) => {
      const text = all.join('');
      const masked = inPieces(maskingOf(value), Buffer.from(text), places, true).toString();
      assert.equal(masked.includes(`${most}r`), false, masked);
      assert.equal(masked.includes('[secret]'), all.includes(value));
    }),
    runs(40, 1000),
  );
});

test('an idle stream shows a short partial match immediately, and a long one when the next bytes are known', () => {
  const masker = maskingOf('hunter2-correct-horse').masker();
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
  assert.equal(text(masker.write(Buffer.from('name: hun'))), 'name: ');
  assert.equal(text(masker.release()), 'hun');
  assert.equal(text(masker.write(Buffer.from('ter2-corr'))), '');
  assert.equal(text(masker.release()), 'te');
  assert.equal(text(masker.release()), '');
  assert.equal(text(masker.write(Buffer.from('ect-horse.'))), '[secret].');
  assert.equal(text(masker.write(Buffer.from('hunter2-corr!'))), 'hunter2-corr!');
});

test('a value of the maximum size is masked, and a long stream takes linear time', () => {
  const value = Array.from({ length: 32_768 }, (_, at) => `x${((at * 7919) % 99_991).toString(36)}`)
    .join('')
    .slice(0, 100_000);
  const masking = maskingOf(value, 'aaaaaaaaaaaaaaaaaaaaaaab');
  assert.equal(maskText(masking, `<${value}>`), '<[secret]>');
  assertGrowth((length) => maskText(masking, 'a'.repeat(length)), { small: 100_000, times: 10, limit: 40 });
});

test('equal values share memory, and each is masked', () => {
  const value = randomBytes(12 * 1024).toString('base64');
  const before = process.memoryUsage().arrayBuffers;
  const masking = maskingOf(...Array.from({ length: 64 }, () => value));
  // Separate patterns would take about 6 MB each.
  assert.equal(process.memoryUsage().arrayBuffers - before < 30_000_000, true);
  assert.equal(maskText(masking, `-${value}-`), '-[secret]-');
  assert.deepEqual(maskingOf('abc', 'long enough', 'abc').tooShort, ['V0', 'V2']);
});
