// New ids, names and keys: their length, and that they differ.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newRootKey, requestIds } from '../../src/crypto/primitives.ts';

test('a request id is eight random characters of its process and a number in base 36', () => {
  const [one, other] = [requestIds(), requestIds()];
  const ids = Array.from({ length: 37 }, one);
  const [first = ''] = ids;
  assert.match(first, /^[0-9a-f]{8}-1$/);
  assert.deepEqual(
    [ids[34], ids[35], ids[36]],
    ['-z', '-10', '-11'].map((end) => first.slice(0, 8) + end),
  );
  assert.notEqual(other().slice(0, 8), first.slice(0, 8));
});

test('a root key is 32 random bytes', () => {
  assert.equal(newRootKey().length, 32);
  assert.notDeepEqual(newRootKey(), newRootKey());
});
