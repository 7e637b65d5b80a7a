/** Contract: access counts are exact, for every query and after every kind of stop. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { removeRow } from '../../src/core/change.ts';
import type { CredentialId } from '../../src/core/names.ts';
import { ALL_PATHS } from '../../src/core/pattern.ts';
import { FIRST_CREDENTIAL, listCredentials } from '../../src/store/credential-lists.ts';
import type { Store } from '../../src/store/port.ts';
import { aCredential, aLease, anEntry, commit, headAt, KEYS, leased, retrievals, stored, T0 } from './rows.ts';
import type { Subject } from './store.ts';

const [A, B] = [aCredential('a'), aCredential('b')];

/** The counts from the list, each compared with the count that is read separately. */
async function countsOf(store: Store): Promise<Record<string, number>> {
  const { rows } = await store.run(
    listCredentials(store.dialect, { ranges: ALL_PATHS, type: null }, FIRST_CREDENTIAL, 100),
  );
  const listed = rows.map(({ path, id, accessCount }) => ({ path, id, accessCount }));
  for (const { path, id, accessCount } of listed) {
    assert.equal(await store.readAccessCount(id), accessCount, path);
  }
  return Object.fromEntries(listed.map(({ path, accessCount }) => [path, accessCount]));
}

export function countContract({ name, newPlace, newVault }: Subject): void {
  test(`${name}: retrievals are added to existing credentials, and returned by lists and by key`, async (t) => {
    const store = await newVault(t);
    await commit(store, { changes: [stored(A), stored(B)] });
    assert.deepEqual(await countsOf(store), { a: 0, b: 0 });
    await commit(store, retrievals(1, [A, B, A]));
    assert.deepEqual(await countsOf(store), { a: 2, b: 1 });
    await commit(store, { accesses: new Map([['gone' as CredentialId, 1]]) });
    assert.equal(await store.readAccessCount('gone' as CredentialId), 0);
    await commit(store, retrievals(4, [A], [stored({ ...A, version: 2 })]));
    assert.deepEqual(await countsOf(store), { a: 3, b: 1 });
  });

  test(`${name}: leases for uses are not counted, before and after a sweep`, async (t) => {
    const store = await newVault(t);
    await commit(store, { changes: [stored(A), stored(B)] });
    await commit(store, retrievals(1, [A, B]));
    const used = (seq: number) => leased(aLease(seq, { credentialId: A.id, path: A.path, kind: 'use' }));
    const entries = [3, 4].map((seq) => anEntry(seq, { resource: 'a', event_type: 'credential.use', action: 'use' }));
    await commit(store, { entries, changes: [used(3), used(4)] });
    assert.deepEqual(await countsOf(store), { a: 1, b: 1 });
    await store.sweep(T0, 10);
    assert.deepEqual(await countsOf(store), { a: 1, b: 1 });
  });

  test(`${name}: a credential created again at a path counts from zero, in the same batch and later`, async (t) => {
    const store = await newVault(t);
    const again = { ...A, id: 'again' as CredentialId };
    await commit(store, retrievals(1, [A, A], [stored(A)]));
    assert.deepEqual(await countsOf(store), { a: 2 });
    const changes = [removeRow('credential', A), stored(again)];
    await commit(store, retrievals(3, [A, again, again], changes));
    assert.deepEqual(await countsOf(store), { a: 2 });
    await commit(store, retrievals(6, [again]));
    assert.deepEqual(await countsOf(store), { a: 3 });
  });

  test(`${name}: a store that is opened again returns the same counts, which include only successful retrievals`, async (t) => {
    const open = await newPlace(t);
    const first = await open();
    await first.initialise('check', headAt(0), 0, KEYS);
    await commit(first, { changes: [stored(A), stored(B)] });
    await commit(first, retrievals(1, [A, B, A]));
    await commit(first, {
      entries: [
        anEntry(4, { resource: 'a', result: 'denied' }),
        anEntry(5, { resource: 'a', event_type: 'credential.store', action: 'store' }),
        anEntry(6, { resource: 'A' }),
        anEntry(7, { resource: 'gone' }),
      ],
    });
    await first.close();
    for (const _ of [1, 2]) {
      const store = await open();
      assert.deepEqual(await countsOf(store), { a: 2, b: 1 });
      await store.close();
    }
    const last = await open();
    t.after(() => last.close());
    await commit(last, retrievals(8, [B]));
    assert.deepEqual(await countsOf(last), { a: 2, b: 2 });
  });
}
