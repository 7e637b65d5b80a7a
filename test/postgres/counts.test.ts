// Sweeping folds retrievals into access counts, concurrently with batches: none is counted twice or lost, and a query
// is exact before and after.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ALL_PATHS } from '../../src/core/pattern.ts';
import { FIRST_CREDENTIAL, listCredentials } from '../../src/store/credential-lists.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { aCredential, commit, headAt, KEY_CHECK, KEYS, retrievals, stored, T0 } from '../contract/rows.ts';
import { sweepAll } from '../contract/sweeping.ts';
import { newDatabase } from '../kit/database.ts';
import { type Scope, withScope } from '../kit/directory.ts';
import { querySql } from '../kit/postmaster.ts';
import { runs } from '../kit/property.ts';

const [A, B] = [aCredential('a'), aCredential('b')];

async function openNodes(scope: Scope, count: number) {
  const url = await newDatabase(scope);
  const open = async (): Promise<PostgresStore> => {
    const store = await PostgresStore.open(parseAddress(url));
    scope.after(() => store.close());
    return store;
  };
  const first = await open();
  await first.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  await commit(first, { changes: [stored(A), stored(B)] });
  const others = await Promise.all(Array.from({ length: count - 1 }, open));
  const addedUp = async (): Promise<number> => {
    const [row] = await querySql(url, 'SELECT sum(count)::integer AS n FROM leasehold.access_counts');
    return Number(row?.['n']);
  };
  return { nodes: [first, ...others] as const, addedUp };
}

async function countsOf(store: PostgresStore): Promise<Record<string, number>> {
  const { rows } = await store.run(
    listCredentials(store.dialect, { ranges: ALL_PATHS, type: null }, FIRST_CREDENTIAL, 100),
  );
  const listed = rows.map(({ path, accessCount }) => [path, accessCount]);
  const asked = [A, B].map(async ({ path, id }) => [path, await store.readAccessCount(id)]);
  assert.deepEqual(await Promise.all(asked), listed);
  return Object.fromEntries(listed);
}

test('a sweep folds the retrievals so far, so that the next query reads no leases for them', async (t) => {
  const { nodes, addedUp } = await openNodes(t, 1);
  const [store] = nodes;
  await commit(store, retrievals(1, [A, B, A]));
  assert.equal(await addedUp(), 0);
  await sweepAll(store, T0);
  assert.equal(await addedUp(), 3);
  assert.deepEqual(await countsOf(store), { a: 2, b: 1 });
  await commit(store, retrievals(4, [B]));
  assert.deepEqual(await countsOf(store), { a: 2, b: 2 });
});

test('over any history the counts are exact, while some nodes sweep and others retrieve', async () => {
  const act = fc.constantFrom('get a', 'get b', 'get a', 'sweep', 'sweep together', 'look');
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 30 }), (history) =>
      withScope(async (scope) => {
        const { nodes, addedUp } = await openNodes(scope, 3);
        const expected = { a: 0, b: 0 };
        let seq = 0;
        for (const [index, word] of history.entries()) {
          const store = nodes[index % nodes.length] ?? nodes[0];
          const lent = word === 'get b' ? B : A;
          if (word === 'sweep') await store.sweep(T0, 10);
          if (word === 'look') assert.deepEqual(await countsOf(store), expected);
          if (!word.startsWith('get') && word !== 'sweep together') continue;
          const sweeping = word === 'sweep together' ? nodes.map((node) => node.sweep(T0, 10)) : [];
          await Promise.all([commit(store, retrievals(++seq, [lent])), ...sweeping]);
          expected[lent === A ? 'a' : 'b'] += 1;
        }
        assert.deepEqual(await countsOf(nodes[0]), expected);
        await Promise.all(nodes.map((node) => node.sweep(T0, 10)));
        await sweepAll(nodes[0], T0);
        assert.equal(await addedUp(), expected.a + expected.b);
        for (const node of nodes) assert.deepEqual(await countsOf(node), expected);
      }),
    ),
    runs(3, 8),
  );
});
