// The one grammar of credential paths. SOURCE: docs/decisions.md, "Names and paths".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parsePath, pathViolation } from '../../src/core/path.ts';
import { anyText, runs } from '../kit/property.ts';
import { refusal, shown } from './refusals.ts';

const SEGMENT_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@:+=~';
const LONGEST_SEGMENT = 'a'.repeat(128);
const LONGEST = [LONGEST_SEGMENT, LONGEST_SEGMENT, LONGEST_SEGMENT, 'a'.repeat(125)].join('/');
const DEEPEST = Array<string>(32).fill('a').join('/');

const ACCEPTED = [
  'a',
  '~',
  '-',
  'prod/db/password',
  'Prod/DB/password',
  SEGMENT_CHARACTERS,
  LONGEST_SEGMENT,
  LONGEST,
  DEEPEST,
  '...',
  '.a',
  'a.',
  '..a',
  'a..b/..c/d..',
  'user@host:22',
  'a=b+c~d',
  '__proto__/constructor',
];

const CHARACTERS = /may contain only/;
const SLASHES = /begin or end/;
const DOTS = /\. or \.\. as a segment/;

const REFUSED: readonly [path: string, rule: RegExp][] = [
  ['', /1 to 512 characters/],
  [`${LONGEST}a`, /1 to 512 characters/],
  ['%'.repeat(513), /1 to 512 characters/],
  [`${DEEPEST}/a`, /at most 32 segments/],
  [`${LONGEST_SEGMENT}a`, /segment must be 1 to 128/],
  [`a/${LONGEST_SEGMENT}a/b`, /segment must be 1 to 128/],
  ['/', SLASHES],
  ['/a', SLASHES],
  ['a/', SLASHES],
  ['a//b', SLASHES],
  ['.', DOTS],
  ['..', DOTS],
  ['../a', DOTS],
  ['a/./b', DOTS],
  ['a/../b', DOTS],
  ['a/..', DOTS],
  ['a%2Fb', CHARACTERS],
  ['a%2e%2e', CHARACTERS],
  ['a\\..\\b', CHARACTERS],
  ['a\n', CHARACTERS],
  ['a\u0000', CHARACTERS],
  ['a\tb', CHARACTERS],
  ['a b', CHARACTERS],
  ['a/*', CHARACTERS],
  ['*', CHARACTERS],
  ['a?b', CHARACTERS],
  ['a#b', CHARACTERS],
  ['ä', CHARACTERS],
  ['a\u0301', CHARACTERS],
  ['\uff41', CHARACTERS],
  ['\u0663', CHARACTERS],
  ['\u212a', CHARACTERS],
  ['a\u2028', CHARACTERS],
  ['\u{1f511}', CHARACTERS],
  ['\ud83d', CHARACTERS],
];

for (const path of ACCEPTED) {
  test(`a path may be ${shown(path)} and is not normalised`, () => {
    assert.equal(parsePath(path), path);
    assert.equal(pathViolation(path), null);
  });
}

for (const [path, rule] of REFUSED) {
  test(`a path may not be ${shown(path)}: ${rule.source}`, () => {
    assert.match(
      refusal('path', () => parsePath(path)),
      rule,
    );
  });
}

test('a segment may contain exactly the characters of the grammar', () => {
  const accepted: string[] = [];
  for (let unit = 0; unit <= 0xffff; unit++) {
    const character = String.fromCharCode(unit);
    if (pathViolation(`a${character}a`) === null) accepted.push(character);
  }
  assert.deepEqual(accepted, [...SEGMENT_CHARACTERS, '/'].sort());
});

/** The grammar of the decisions page, written as code. */
function fitsPlainly(path: string): boolean {
  const segments = path.split('/');
  return (
    path.length <= 512 &&
    segments.length <= 32 &&
    segments.every(
      (segment) =>
        segment.length >= 1 &&
        segment.length <= 128 &&
        [...segment].every((character) => SEGMENT_CHARACTERS.includes(character)) &&
        segment !== '.' &&
        segment !== '..',
    )
  );
}

const likelySegments = fc.oneof(
  fc.constantFrom('', '.', '..', '...', 'a', 'a b', 'é', LONGEST_SEGMENT, `${LONGEST_SEGMENT}a`),
  fc.string({ unit: fc.constantFrom(...SEGMENT_CHARACTERS), maxLength: 130 }),
  fc.string({ maxLength: 3 }),
);
const likelyPaths = fc.oneof(
  fc.array(likelySegments, { maxLength: 6 }).map((segments) => segments.join('/')),
  fc.array(fc.constantFrom('a', '.'), { minLength: 28, maxLength: 36 }).map((segments) => segments.join('/')),
  anyText(),
);

test('a path is accepted if and only if it fits that grammar', () => {
  fc.assert(
    fc.property(likelyPaths, (path) => {
      assert.equal(pathViolation(path) === null, fitsPlainly(path));
    }),
    runs(200, 2000),
  );
});

test('an error names the given field and does not repeat the input', () => {
  const sentences = new Set<string>();
  for (const [path] of REFUSED) sentences.add(refusal('resource', () => parsePath(path, 'resource')));
  assert.equal(sentences.size, 6);
  fc.assert(
    fc.property(likelyPaths, (path) => {
      if (fitsPlainly(path)) return;
      assert.ok(sentences.has(refusal('resource', () => parsePath(path, 'resource'))));
    }),
    runs(300),
  );
});
