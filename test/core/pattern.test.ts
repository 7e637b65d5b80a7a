// Resource patterns and the ranges that a list reads for them. SOURCE: docs/decisions.md, "Policies".

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parsePath } from '../../src/core/path.ts';
import {
  ALL_PATHS,
  matches,
  matchingPatterns,
  nearestOf,
  nearestPattern,
  type PathRange,
  type Pattern,
  parsePattern,
  rangeFrom,
  toRanges,
  unionOf,
} from '../../src/core/pattern.ts';
import { runs } from '../kit/property.ts';
import { patternCovers } from './reference.ts';
import { refusal } from './refusals.ts';

const EVERY_LENGTH = { has: () => true };

const LONGEST = [...Array<string>(3).fill('a'.repeat(128)), 'a'.repeat(125)].join('/');

const REFUSED: readonly (readonly [rule: RegExp, patterns: readonly string[]])[] = [
  [/\* is allowed only/, ['**', '*/*', 'a*', 'a/b*', '*a', '*/a', 'a/*/b', 'a/**', 'a/*/*', 'a*/*', 'a/* ']],
  [/1 to 512/, ['', '/*', `${LONGEST}a/*`]],
  [/begin or end/, ['a/', '/a', 'a//*']],
  [/\.\. as a segment/, ['../*', 'a/./*']],
  [/may contain only/, ['a/?', '[a]/*']],
];

test('the grammar of patterns', () => {
  for (const text of ['*', 'a', 'prod/db', 'prod/*', 'a/b/c/*', '.../*', LONGEST, `${LONGEST}/*`])
    assert.equal(parsePattern(text), text);
  for (const [rule, refused] of REFUSED) {
    for (const text of refused)
      assert.match(
        refusal('resources', () => parsePattern(text), text),
        rule,
      );
  }
});

/** The paths that each pattern covers, and others near them. */
const COVERED: readonly (readonly [pattern: string, covered: readonly string[], others: readonly string[]])[] = [
  ['prod/db', ['prod/db'], ['prod/db/x', 'prod', 'Prod/db']],
  ['prod/*', ['prod/db', 'prod/db/x/y/z'], ['prod', 'prod2/db', 'prod.db', 'x/prod/db', 'PROD/db']],
  ['prod/db/*', [], ['prod/dbx']],
  ['*', ['a', 'a/b/c'], []],
];

test('a pattern covers itself or what is below it', () => {
  for (const [pattern, covered, others] of COVERED) {
    for (const path of [...covered, ...others]) {
      assert.equal(matches(parsePattern(pattern), parsePath(path)), covered.includes(path), `${pattern} ${path}`);
      const found = matchingPatterns(parsePath(path), EVERY_LENGTH).includes(parsePattern(pattern));
      assert.equal(found, covered.includes(path), `${pattern} ${path}`);
    }
  }
});

test('a path of n segments has n + 1 patterns, and those with a length in use are returned', () => {
  assert.deepEqual(matchingPatterns(parsePath('a/b/c'), EVERY_LENGTH), ['*', 'a/*', 'a/b/*', 'a/b/c']);
  assert.deepEqual(matchingPatterns(parsePath('a/b/c'), new Set([3, 5])), ['a/*', 'a/b/*', 'a/b/c']);
  assert.deepEqual(matchingPatterns(parsePath('a/b/c'), new Set([2, 4])), []);
  assert.equal(matchingPatterns(parsePath(Array<string>(32).fill('a').join('/')), EVERY_LENGTH).length, 33);
});

// Few segments, with the first and last characters in order, so that ranges touch and overlap.
const segment = fc.oneof(
  fc.constantFrom('a', 'b', 'a0', 'a+', 'a-', 'a.', 'a~', 'A', '0', '~', '+', 'aa'),
  fc
    .string({ unit: fc.constantFrom(...'az09AZ._-@:+=~'), minLength: 1, maxLength: 3 })
    .filter((text) => !/^\.{1,2}$/.test(text)),
);
const paths = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => parsePath(segments.join('/')));
const patterns = fc.oneof(
  { weight: 1, arbitrary: fc.constant(parsePattern('*')) },
  { weight: 8, arbitrary: paths.map((path) => parsePattern(path)) },
  { weight: 8, arbitrary: paths.map((path) => parsePattern(`${path}/*`)) },
);

const isWithin = (ranges: readonly PathRange[], path: string): boolean =>
  ranges.some(({ from, to }) => from <= path && path < to);

/** The paths at the borders of each pattern, where a range could be a character too wide or too narrow. */
function neighbours(pattern: Pattern): string[] {
  const stem = pattern.replace(/\/?\*$/, '');
  return [...'+-./0:=@AZ_az~']
    .flatMap((character) => [`${stem}${character}`, `${stem}${character}a`, `${stem}/${character}`])
    .concat(stem)
    .filter((text) => text !== '' && !/\/$|^\/|\/\/|(?:^|\/)\.{1,2}(?:\/|$)/.test(text));
}

test('matching agrees with the reference for every pattern and path', () => {
  fc.assert(
    fc.property(patterns, paths, (pattern, path) => {
      for (const near of [path, ...neighbours(pattern).map((text) => parsePath(text))]) {
        assert.equal(matches(pattern, near), patternCovers(pattern, near), `${pattern} and ${near}`);
        assert.equal(
          matchingPatterns(near, EVERY_LENGTH).includes(pattern),
          patternCovers(pattern, near),
          `${pattern} and ${near}`,
        );
      }
    }),
    runs(100, 500),
  );
});

test('merging the ranges of several lists gives the ranges of all patterns, and they are found by path', () => {
  const lists = fc.array(fc.array(patterns, { maxLength: 6 }), { maxLength: 4 });
  fc.assert(
    fc.property(lists, paths, (several, path) => {
      const ranges = toRanges(several.flat());
      assert.deepEqual(unionOf(several.map((each) => toRanges(each))), ranges);
      const next = ranges.findIndex(({ to }) => to > path);
      assert.equal(rangeFrom(ranges, path), next === -1 ? ranges.length : next);
    }),
    runs(100, 500),
  );
});

test('the ranges of patterns contain exactly the paths that a pattern covers', () => {
  fc.assert(
    fc.property(fc.array(patterns, { maxLength: 6 }), fc.array(paths, { maxLength: 6 }), (several, some) => {
      const ranges = toRanges(several);
      for (const path of [...some, ...several.flatMap(neighbours)]) {
        const isCovered = several.some((pattern) => patternCovers(pattern, path));
        assert.equal(isWithin(ranges, path), isCovered, `${path} in ${JSON.stringify(several)}`);
      }
    }),
    runs(100, 500),
  );
});

test('ranges are in order and do not overlap, so that a list shows no path twice', () => {
  fc.assert(
    fc.property(fc.array(patterns, { maxLength: 8 }), (several) => {
      const ranges = toRanges(several);
      for (const [index, { from, to }] of ranges.entries()) {
        assert.ok(from < to);
        const next = ranges[index + 1];
        assert.ok(next === undefined || to <= next.from);
      }
    }),
    runs(100, 500),
  );
});

test('no patterns give no ranges, and the administrator’s range contains every path', () => {
  assert.deepEqual(toRanges([]), []);
  fc.assert(
    fc.property(paths, (path) => assert.ok(isWithin(ALL_PATHS, path))),
    runs(200),
  );
});

test('the nearest pattern among sorted ones is the one that a scan of all finds', () => {
  const segments = fc.constantFrom('a', 'b', 'ab', 'a-b', 'a.b', 'B', '~');
  const path = fc.array(segments, { minLength: 1, maxLength: 4 }).map((parts) => parsePath(parts.join('/')));
  const pattern = fc.oneof(
    path.map((text) => parsePattern(text)),
    path.map((text) => parsePattern(`${text}/*`)),
    fc.constant(parsePattern('*')),
  );
  fc.assert(
    fc.property(fc.uniqueArray(pattern, { maxLength: 12 }), path, (patterns, wanted) => {
      assert.equal(nearestOf(patterns.toSorted(), wanted), nearestPattern(patterns, wanted));
    }),
    runs(100, 1000),
  );
});
