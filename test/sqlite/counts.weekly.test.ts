// Access counts in memory and in SQLite's rows: written automatically, so that a start has little of the log to count.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCredentialMetadata } from '../../src/vault/credentials/credentials.ts';
import { selectRows } from '../kit/direct-db.ts';
import { admin, get, type OpenedVault, openVault, put, toPath } from '../vault/fixture.ts';

async function looked(vault: OpenedVault, path: string): Promise<number> {
  return (await readCredentialMetadata(vault, admin(), toPath(path))).credential.accessCount;
}

test('counts are written automatically after a number of retrievals, so that the next start counts only the later ones', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  for (let i = 0; i < 505; i++) await Promise.all(Array.from({ length: 200 }, () => get(vault, 'a')));
  const [head] = await selectRows(vault.directory, 'SELECT seq, counted_through_seq AS written FROM audit_head');
  const left = Number(head?.['seq']) - Number(head?.['written']);
  assert.ok(left < 2000, `${left} accesses of 101,000 are not written`);
  assert.equal(await looked(vault, 'a'), 101_000);
  const again = await openVault(t, { directory: vault.directory });
  assert.equal(await looked(again, 'a'), 101_000);
});
