// Highlighted values: escape sequences between their characters do not prevent masking.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { createMasking, type Masking } from '../../src/masking/masking.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { runs } from '../kit/property.ts';
import { maskText } from './mask-text.ts';

const maskingOf = (...values: string[]): Masking =>
  createMasking(values.map((value, at) => [`V${at}`, new Secret(value)] as const));
const SEQUENCE = String.raw`${'\x1b'}\[[0-9:;<=>?]*[mK]`;
const bare = (text: string): string => text.replaceAll(new RegExp(SEQUENCE, 'g'), '');

/** The output if the stream is split at each of the positions. */
function inPieces(masking: Masking, text: string, cuts: readonly number[], isQuiet = false): string {
  const masker = masking.masker();
  const bytes = Buffer.from(text);
  const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
  const out: Uint8Array[] = [];
  for (const [at, place] of places.entries()) {
    out.push(masker.write(bytes.subarray(place, places[at + 1] ?? bytes.length)));
    if (isQuiet) out.push(masker.release());
  }
  return Buffer.concat([...out, masker.end()]).toString();
}

test('a value that grep highlights is masked completely', () => {
  const value = 'S3cr3t-value-of-mine';
  const { stdout } = spawnSync('grep', ['--color=always', 'value'], { input: `<${value}>\n`, encoding: 'utf8' });
  assert.match(stdout, new RegExp(`S3cr3t-(?:${SEQUENCE})+value`));
  assert.equal(bare(maskText(maskingOf(value), stdout)), '<[secret]>\n');
});

test('escape sequences around a value and inside other text are unchanged', () => {
  const masking = maskingOf('hunter2');
  assert.equal(maskText(masking, '\x1b[31mhunter2\x1b[0m'), '\x1b[31m[secret]\x1b[0m');
  assert.equal(maskText(masking, 'hun\x1b[1mter3 hun\x1b[2Jter2'), 'hun\x1b[1mter3 hun\x1b[2Jter2');
  assert.equal(maskText(masking, 'hun\x1b[\x1b[31mter2 hu\x1b[1;31m\x1b[Knter2'), 'hun\x1b[\x1b[31mter2 [secret]');
});

test('values that contain escape sequences are found', () => {
  for (const value of ['ab\x1b[31mcd', '\x1b[31mred', 'abc\x1b[', 'abc\x1b[3', '31mabc'])
    assert.equal(maskText(maskingOf(value), `<${value}1m>`), '<[secret]1m>', JSON.stringify(value));
});

test('what one tracker holds is not released by the other', () => {
  // With all bytes, "[mhunt" may become the first value. Without the sequence, only "hunt" may become the second.
  const masking = maskingOf('[mhunter', 'hunt1234');
  const text = '[\x1b[mhunter';
  for (const cut of Buffer.from(text).keys())
    assert.equal(inPieces(masking, text, [cut]), '[\x1b[secret]', `divided after ${cut} bytes`);
});

test('a match that is found late does not shorten another one', () => {
  const masking = maskingOf('ahunt\x1b[', 'mhunt\x1b[1x');
  assert.equal(maskText(masking, 'a\x1b[mhunt\x1b[1x!'), '[secret]!');
});

/** The text with NUL in place of each byte that belongs to a verbatim match. */
function hideMatches(values: readonly string[], text: string): string {
  const hidden = [...text];
  for (const value of values) {
    for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + 1))
      hidden.fill('\0', at, at + value.length);
  }
  return hidden.join('');
}

/** Whether what is between the masks is in `hidden`, in order. */
function isWithin(hidden: string, masked: string): boolean {
  const [first = '', ...others] = masked.split('[secret]');
  const last = others.pop();
  if (last === undefined) return hidden === first;
  if (!hidden.startsWith(first) || !hidden.endsWith(last)) return false;
  let at = first.length;
  for (const each of others) {
    const found = hidden.indexOf(each, at);
    if (found === -1) return false;
    at = found + each.length;
  }
  return at + last.length <= hidden.length;
}

const SEQUENCES = [
  '\x1b[m',
  '\x1b[K',
  '\x1b[01;31m',
  '\x1b[38;2;255;0;10m',
  '\x1b[38:5:9m',
  '\x1b[0m\x1b[K',
  '',
] as const;
const cuts = fc.array(fc.nat(), { maxLength: 12 });
/** A highlighted value: each character with the sequence before it. */
const painted = (value: string) =>
  fc
    .array(fc.constantFrom(...SEQUENCES), { minLength: value.length, maxLength: value.length })
    .map((all) => [...value].map((letter, at) => (at === 0 ? '' : (all[at] ?? '')) + letter).join(''));

for (const value of ['abcd', 'hunter2-correct-horse', `${'0123456789abcdef'.repeat(14)}-long`]) {
  test(`fuzzed: a value of ${value.length} bytes is masked wherever it contains sequences and the stream is split`, () => {
    for (const form of [value, Buffer.from(value).toString('hex')]) {
      fc.assert(
        fc.property(painted(form), cuts, (text, places) => {
          const masked = bare(inPieces(maskingOf(value), `a ${text} z ${text}`, places));
          assert.match(masked, /^a (?:\[secret\])+ z (?:\[secret\])+$/);
        }),
        runs(40, 300),
      );
    }
  });
}

test('fuzzed: the output does not depend on how the stream is split, and other text is unchanged', () => {
  const words = fc.array(
    fc.constantFrom('a', 'b', 'c', '\n', '\x1b', '[', '3', 'm', 'K', '\x1b[m', '\x1b[31m', '\x1b[2J'),
    { maxLength: 60 },
  );
  const parts = fc.oneof(
    fc.array(fc.constantFrom('a', 'b'), { minLength: 4, maxLength: 5 }),
    fc.array(fc.constantFrom('a', 'b', '\x1b', '[', '3', 'm'), { minLength: 4, maxLength: 7 }),
  );
  const values = fc.array(
    parts.map((all) => all.join('')),
    { minLength: 1, maxLength: 3 },
  );
  fc.assert(
    fc.property(values, words, cuts, (all, letters, places) => {
      const [masking, text] = [maskingOf(...all), letters.join('')];
      const masked = inPieces(masking, text, places);
      assert.equal(masked, maskText(masking, text));
      // Whatever sequences it contains, a verbatim match is masked completely.
      const quiet = inPieces(masking, text, places, true);
      // A value may begin before a mask and end with the mask's bracket.
      const shown = [masked, quiet].map((each) => each.replaceAll('[secret]', '\0'));
      for (const value of all) assert.ok(!shown.some((each) => each.includes(value)), value);
      assert.ok(isWithin(hideMatches(all, text), masked), masked);
      // Without a match, verbatim or without sequences, the text is unchanged. Matches may also begin inside a
      // sequence.
      const seen = [text, bare(text)].map((each) => each.replaceAll('\n', ''));
      if (all.every((value) => /^[ab]+$/.test(value) && !seen.some((each) => each.includes(value))))
        assert.equal(masked, text);
    }),
    runs(80, 3000),
  );
});

test('fuzzed: however often the stream is idle, a highlighted value is not shown', () => {
  const value = 'hunter2-correct-horse';
  fc.assert(
    fc.property(painted(value), cuts, (text, places) => {
      const masked = bare(inPieces(maskingOf(value), text, places, true));
      assert.match(masked, /^(?:h|hu|hun|hunt|hunte)?\[secret\]$/);
    }),
    runs(30, 1000),
  );
});

test('a partial match that is followed by endless escape sequences is released', () => {
  const masker = maskingOf('hunter2').masker();
  const shown = masker.write(Buffer.from(`hunt${'\x1b[31m'.repeat(1000)}`));
  assert.equal(shown.length > 4000, true);
});
