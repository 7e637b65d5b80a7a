// The nearest pattern among sorted ones is the one that a scan of all finds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CredentialPath } from '../../src/core/path.ts';
import { nearestOf, nearestPattern, type Pattern } from '../../src/core/pattern.ts';
import { runs } from '../kit/property.ts';

const segment = fc.constantFrom('a', 'b', 'ab', 'a-b', 'a.b', 'B', '~');
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/') as CredentialPath);
const pattern = fc.oneof(
  path.map((text) => text as string as Pattern),
  path.map((text) => `${text}/*` as Pattern),
  fc.constant('*' as Pattern),
);

test('the nearest pattern of sorted ones', () => {
  fc.assert(
    fc.property(fc.uniqueArray(pattern, { maxLength: 12 }), path, (patterns, wanted) => {
      assert.equal(nearestOf(patterns.toSorted(), wanted), nearestPattern(patterns, wanted));
    }),
    runs(100, 1000),
  );
});
