// A search of paths that stops before it has seen all. SOURCE: docs/api.md, "GET /api/v1/search".

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { searchCredentials } from '../../src/store/credential-lists.ts';
import type { Statement } from '../../src/store/statement.ts';
import { search } from '../../src/vault/overview/search.ts';
import { admin, CONNECTED, inFrontOfReads, openVault, put, toPath } from './fixture.ts';

test('equal names and those that begin with the text come first, also if others have used up the limit', async (t) => {
  const vault = await openVault(t, {
    // Simulates 3,000 paths with the text that come first.
    inFront: (store) =>
      inFrontOfReads(store, searchCredentials, async (_, procedure) => {
        const [from] = (procedure.next().value as Statement).values;
        const rows = Array.from({ length: 1000 }, (_row, number) => ({
          path: toPath(`a${from}/${number}/stripe-key`),
          description: '',
        }));
        return { rows, next: `a${from}` };
      }),
  });
  const near = ['strip', 'stripd', 'stripf', 'Stripe', 'STRIPE/a'];
  for (const path of ['stripe', 'stripe/live', 'stripe-test', 'stripe~', ...near]) await put(vault, path);
  const namesOf = async (text: string, limit: number) => {
    const { isComplete, results } = await search(vault, admin(), text, limit, CONNECTED);
    assert.equal(isComplete, false);
    return results.map(({ name }) => name);
  };
  const beginning = ['stripe', 'stripe-test', 'stripe/live', 'stripe~'];
  assert.deepEqual((await namesOf('stripe', 50)).slice(0, 5), [...beginning, 'a/0/stripe-key']);
  assert.deepEqual(await namesOf('stripe', 2), beginning.slice(0, 2));
  assert.deepEqual((await namesOf('Stripe', 6)).slice(0, 5), ['Stripe', ...beginning]);
  assert.deepEqual((await namesOf('stripe/l', 1))[0], 'stripe/live');
  // No path has such characters, and a database may not take them.
  for (const none of ['stripe ü', 'stripe\0', '\ud800']) await search(vault, admin(), none, 1, CONNECTED);
});
