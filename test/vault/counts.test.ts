// Access counts: what counts as a retrieval, and within one batch.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { remove } from '../../src/vault/credentials/credential-operations.ts';
import { listCredentials, readCredentialMetadata } from '../../src/vault/credentials/credentials.ts';
import { admin, CONNECTED, get, type OpenedVault, openVault, outcomeOf, put, toPath } from './fixture.ts';

async function listed(vault: OpenedVault): Promise<Record<string, number>> {
  const { rows } = await listCredentials(vault, admin(), { type: null }, null, CONNECTED);
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
