// The one grammar of credential paths. SOURCE: docs/decisions.md, "Names and paths".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parsePath, pathViolation } from '../../src/core/path.ts';
import { anyText, runs } from '../kit/property.ts';
import { refusal } from './refusals.ts';

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

const REFUSED: readonly (readonly [rule: RegExp, paths: readonly string[]])[] = [
  [/1 to 512 characters/, ['', `${LONGEST}a`, '%'.repeat(513)]],
  [/at most 32 segments/, [`${DEEPEST}/a`]],
  [/segment must be 1 to 128/, [`${LONGEST_SEGMENT}a`, `a/${LONGEST_SEGMENT}a/b`]],
  [/begin or end/, ['/', '/a', 'a/', 'a//b']],
  [/\. or \.\. as a segment/, ['.', '..', '../a', 'a/./b', 'a/../b', 'a/..']],
  [
    /may contain only/,
    ['a%2Fb', 'a%2e%2e', 'a\\..\\b', 'a\n', 'a\u0000', 'a\tb', 'a b', 'a/*', '*', 'a?b', 'a#b', 'ä'],
  ],
  [/may contain only/, ['a\u0301', '\uff41', '\u0663', '\u212a', 'a\u2028', '\u{1f511}', '\ud83d']],
];

test('a path is not normalised', () => {
  for (const path of ACCEPTED) {
    assert.equal(parsePath(path), path);
    assert.equal(pathViolation(path), null);
  }
});

test('an error says which rule a path breaks', () => {
  for (const [rule, paths] of REFUSED) {
    for (const path of paths)
      assert.match(
        refusal('path', () => parsePath(path), path),
        rule,
      );
  }
});

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
  for (const path of REFUSED.flatMap(([, paths]) => paths))
    sentences.add(refusal('resource', () => parsePath(path, 'resource')));
  assert.equal(sentences.size, 6);
  fc.assert(
    fc.property(likelyPaths, (path) => {
      if (fitsPlainly(path)) return;
      assert.ok(sentences.has(refusal('resource', () => parsePath(path, 'resource'))));
    }),
    runs(300),
  );
});
