// The credential cache: every change of a credential is visible to the next batch.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { removeRow } from '../../src/core/change.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { CredentialCache } from '../../src/store/sqlite/loader.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import {
  aCredential,
  asPath,
  aVersion,
  commit,
  find,
  headAt,
  KEY_CHECK,
  KEYS,
  stored,
  T0,
  versioned,
} from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const key = { credential: asPath('a'), version: 'newest' } as const;

async function openVault(t: TestContext) {
  const file = join(temporaryDirectory(t), 'vault.db');
  const store = new SqliteStore(file);
  t.after(() => store.close());
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  const look = async () => {
    const { rows, versions } = await find(store, [key]);
    const id = rows.credential[0]?.id;
    return [
      id === undefined ? null : await store.readAccessCount(id),
      [...((versions[0]?.version.content as Uint8Array) ?? [])],
    ];
  };
  const credential = aCredential('a');
  await commit(store, { changes: [stored(credential), versioned(credential, 1, bytes(1))] });
  assert.deepEqual(await look(), [0, [1]]);
  return { file, store, look, credential };
}

test('the next batch sees changes by this process: a new version, a count, a deletion, another credential', async (t) => {
  const { store, look, credential } = await openVault(t);
  await commit(store, { changes: [stored({ ...credential, version: 2 }), versioned(credential, 2, bytes(2))] });
  assert.deepEqual(await look(), [0, [2]]);
  await commit(store, { accesses: new Map([[credential.id, 7]]) });
  assert.deepEqual(await look(), [7, [2]]);
  await commit(store, { changes: [{ kind: 'pruneVersions', credentialId: credential.id, through: 2 }] });
  assert.deepEqual(await look(), [7, []]);
  await commit(store, { changes: [removeRow('credential', credential)] });
  assert.deepEqual(await look(), [null, []]);
  const again = { ...aCredential('a'), id: aCredential('b').id };
  await commit(store, { changes: [stored(again), versioned(again, 1, bytes(9))] });
  assert.deepEqual(await look(), [0, [9]]);
});

test('the next batch sees changes by another program', async (t) => {
  const { file, look } = await openVault(t);
  const other = new DatabaseSync(file);
  t.after(() => other.close());
  other.exec("UPDATE credential_versions SET sealed = x'0708'");
  assert.deepEqual(await look(), [0, [7, 8]]);
  other.exec('DELETE FROM credentials');
  assert.deepEqual(await look(), [null, []]);
});

test('the cache is bounded in bytes, and evicts the least recently used credential', (t) => {
  const database = openDatabase(join(temporaryDirectory(t), 'vault.db'));
  t.after(() => database.close());
  const hot = new CredentialCache(database);
  const put = (n: number, size: number): void => {
    const credential = { ...aCredential(`p${n}`) };
    const newest = { ...aVersion(1), content: new Uint8Array(size) };
    hot.put(credential.path, { credential, countId: n, newest, subject: `credential:p${n}`, state: null });
  };
  const kept = (count: number) => Array.from({ length: count }, (_, n) => n).filter((n) => hot.get(asPath(`p${n}`)));
  for (let n = 0; n < 200; n++) put(n, 80_000);
  const large = kept(200);
  assert.ok(large.length > 50 && large.length < 110, `${large.length} of 80 kB each are kept`);
  assert.equal(large.at(-1), 199);
  put(1000, 300_000);
  assert.equal(hot.get(asPath('p1000')), null, 'a large one would push out a hundred others');
});
