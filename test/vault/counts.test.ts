// Access counts are exact, also after a crash.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { remove } from '../../src/core/operations/credentials.ts';
import { listCredentials, readCredentialMetadata } from '../../src/vault/credentials.ts';
import { runs } from '../kit/property.ts';
import { scaled } from '../kit/scale.ts';
import { admin, get, type OpenedVault, openVault, outcomeOf, put, toPath } from './fixture.ts';

const PATHS = ['a', 'b', 'c'] as const;

async function listed(vault: OpenedVault): Promise<Record<string, number>> {
  const { rows } = await listCredentials(vault, admin(), { type: null }, null);
  const credentials = (await Array.fromAsync(rows)).flat();
  return Object.fromEntries(credentials.map(({ path, accessCount }) => [path, accessCount]));
}

async function looked(vault: OpenedVault, path: string): Promise<number> {
  return (await readCredentialMetadata(vault, admin(), toPath(path))).credential.accessCount;
}

test('every successful retrieval is counted immediately, and no other access', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  for (let count = 1; count <= 3; count++) {
    await get(vault, 'a');
    await outcomeOf(get(vault, 'none'));
    assert.equal(await looked(vault, 'a'), count);
  }
  await put(vault, 'a', 'a new version');
  assert.deepEqual(await listed(vault), { a: 3 });
  await Promise.all(Array.from({ length: 200 }, () => get(vault, 'a')));
  assert.equal(await looked(vault, 'a'), 203);
  assert.deepEqual(await listed(vault), { a: 203 });
});

test('counts that were not written before a crash are recovered, and not counted twice', async (t) => {
  let vault = await openVault(t);
  await put(vault, 'a');
  let expected = 0;
  for (const isListed of [false, true, false, false, true]) {
    for (let i = 0; i < 5; i++) await get(vault, 'a');
    expected += 5;
    if (isListed) assert.deepEqual(await listed(vault), { a: expected });
    vault = await openVault(t, { directory: vault.directory });
    assert.equal(await looked(vault, 'a'), expected);
  }
});

test('a credential deleted and stored again is counted from zero, in one batch or several', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  await Promise.all([get(vault, 'a'), get(vault, 'a')]);
  await Promise.all([
    get(vault, 'a'),
    vault.ledger.submit(remove(admin(), toPath('a'))),
    put(vault, 'a'),
    get(vault, 'a'),
    get(vault, 'a'),
  ]);
  assert.equal(await looked(vault, 'a'), 2);
  const again = await openVault(t, { directory: vault.directory });
  assert.equal(await looked(again, 'a'), 2);
  await get(again, 'a');
  assert.deepEqual(await listed(again), { a: 3 });
});

test('for any history the counts are exact, in lists and metadata, before and after crashes', async (t) => {
  const act = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(fc.constant('get' as const), fc.constantFrom(...PATHS)) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('put' as const, 'remove' as const), fc.constantFrom(...PATHS)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('list' as const), fc.constant('a' as const)) },
  );
  // The operations of an inner list are concurrent; between lists the service may be killed.
  const history = fc.array(fc.record({ acts: fc.array(act, { maxLength: 12 }), isKilled: fc.boolean() }), {
    maxLength: 10,
  });
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      let vault = await openVault(t);
      const opened = [vault];
      const counts = new Map<string, number>();
      for (const { acts, isKilled } of steps) {
        // The model runs in the order of the questions, which is that of the decisions.
        const outcomes = acts.map(([kind, path]) => {
          if (kind === 'put') return outcomeOf(put(vault, path));
          if (kind === 'remove') return outcomeOf(vault.ledger.submit(remove(admin(), toPath(path))));
          return kind === 'list' ? outcomeOf(listed(vault)) : outcomeOf(get(vault, path));
        });
        for (const [kind, path] of acts) {
          const before = counts.get(path);
          if (kind === 'put') counts.set(path, before ?? 0);
          if (kind === 'remove') counts.delete(path);
          if (kind === 'get' && before !== undefined) counts.set(path, before + 1);
        }
        await Promise.all(outcomes);
        if (isKilled) {
          vault = await openVault(t, { directory: vault.directory });
          opened.push(vault);
        }
        for (const [path, count] of counts) assert.equal(await looked(vault, path), count, path);
      }
      assert.deepEqual(await listed(vault), Object.fromEntries([...counts].sort()));
      for (const { real } of opened) await real.close();
    }),
    runs(scaled(10, 25)),
  );
});
