// Tests the mapping of names of other programs to paths.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parsePrefix, toPath, toSegment } from '../../src/cli/import/path-names.ts';
import { pathViolation } from '../../src/core/path.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { anyText, runs } from '../kit/property.ts';

const SEGMENTS: readonly [name: string, segment: string][] = [
  ['DB_PASSWORD', 'DB_PASSWORD'],
  ['Personal Gmail', 'Personal-Gmail'],
  ['  a   b  ', 'a-b'],
  ['Zürich Café', 'Zurich-Cafe'],
  ['a/b', 'a-b'],
  ['a\\b', 'a-b'],
  ['a-b', 'a-b'],
  ['a - b', 'a---b'],
  ['user@example.com', 'user@example.com'],
  ['..', ''],
  ['.', ''],
  ['...', '...'],
  ['../../etc', '..-..-etc'],
  ['日本語', ''],
  ['\u001b[31mred\u001b[0m', '31mred-0m'],
  ['a\u0000b', 'a-b'],
  ['__proto__', '__proto__'],
  ['👍 ok', 'ok'],
  ['', ''],
];

for (const [name, segment] of SEGMENTS) {
  test(`${JSON.stringify(name)} becomes ${JSON.stringify(segment)}`, () => assert.equal(toSegment(name), segment));
}

test('any names become a valid path, or the broken rule is returned', () => {
  fc.assert(
    fc.property(fc.array(anyText(40), { maxLength: 40 }), (names) => {
      const named = toPath(['shop'], names);
      if ('path' in named) assert.equal(pathViolation(named.path), null);
      else assert.notEqual(named.rejected, '');
    }),
    runs(500),
  );
});

test('names are not truncated: a name that is too long is rejected', () => {
  assert.ok('path' in toPath([], ['a'.repeat(128)]));
  for (const length of [129, 1024, 100_000]) assert.ok('rejected' in toPath([], ['a'.repeat(length)]), String(length));
  assert.ok(
    'rejected' in
      toPath(
        [],
        Array.from({ length: 33 }, () => 'a'),
      ),
  );
});

test('a prefix must be a valid path', () => {
  assert.deepEqual(parsePrefix('shop/dev/'), ['shop', 'dev']);
  assert.deepEqual(parsePrefix(null), []);
  for (const text of ['/shop', 'a//b', '../a', 'a b', '/']) {
    assert.throws(() => parsePrefix(text), UsageError, text);
  }
});
