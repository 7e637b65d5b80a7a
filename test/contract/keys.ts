/** Contract: the rows of key slots, of the keyset and of the counts of encryptions. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readEncryptionCounts, readStoredKeys } from '../../src/store/vault-metadata.ts';
import type { SlotId, SlotName } from '../../src/vault/keys/keyset.ts';
import { headAt, KEY_CHECK, KEYS, SLOT, T0 } from './rows.ts';
import type { Subject } from './store.ts';

const bytes = <T extends { sealed?: Uint8Array; sealedRoot?: Uint8Array }>(row: T | null) =>
  row === null
    ? null
    : {
        ...row,
        ...(row.sealed && { sealed: [...row.sealed] }),
        ...(row.sealedRoot && { sealedRoot: [...row.sealedRoot] }),
      };

export function keyContract({ name, newPlace }: Subject): void {
  test(`${name}: a new vault has its keys`, async (t) => {
    const store = await (await newPlace(t))();
    t.after(() => store.close());
    const none = await store.run(readStoredKeys());
    assert.deepEqual(none, { keyCheck: null, vaultId: null, keyset: null, slots: [] });
    await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
    const { keyCheck, vaultId, keyset, slots } = await store.run(readStoredKeys());
    assert.deepEqual([keyCheck, vaultId], [KEY_CHECK, 'a vault']);
    assert.deepEqual(bytes(keyset), { id: 1, version: 1, rootVersion: 1, sealed: [4, 5, 6] });
    assert.deepEqual(slots.map(bytes), [{ ...SLOT, sealedRoot: [1, 2, 3] }]);
  });

  test(`${name}: a batch changes slots, keyset and counts, and loads the slots`, async (t) => {
    const store = await (await newPlace(t))();
    t.after(() => store.close());
    await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
    const other = { ...SLOT, id: 'slot-2' as SlotId, name: 'other' as SlotName, kind: 'passphrase' as const };
    const first = await store.begin([{}]);
    assert.deepEqual(first.found.keySlots, []);
    await (
      await first.commit({
        entries: [],
        treeNodes: [],
        head: headAt(0),
        accesses: new Map(),
        changes: [
          { kind: 'putKeySlot', slot: other },
          { kind: 'putKeySlot', slot: { ...SLOT, rootVersion: 2 } },
          { kind: 'putKeyset', keyset: { version: 2, rootVersion: 2, sealed: new Uint8Array([7]) } },
          { kind: 'countEncryptions', keyId: '0a', seals: 2 },
          { kind: 'countEncryptions', keyId: '0a', seals: 3 },
          { kind: 'countEncryptions', keyId: '0b', seals: 1 },
        ],
      })
    ).durable;
    const second = await store.begin([{ keySlots: true }, { keySlots: true }]);
    assert.deepEqual(second.found.keySlots.map(({ id, rootVersion }) => [id, rootVersion]).sort(), [
      ['slot-1', 2],
      ['slot-2', 1],
    ]);
    assert.equal(second.shared?.keysetVersion ?? 2, 2);
    await (
      await second.commit({
        entries: [],
        treeNodes: [],
        head: headAt(0),
        accesses: new Map(),
        changes: [{ kind: 'removeKeySlot', id: other.id }],
      })
    ).durable;
    const { keyset, slots } = await store.run(readStoredKeys());
    assert.deepEqual(bytes(keyset), { id: 1, version: 2, rootVersion: 2, sealed: [7] });
    assert.deepEqual(
      slots.map(({ id }) => id),
      ['slot-1'],
    );
    assert.deepEqual([...(await store.run(readEncryptionCounts()))].sort(), [
      ['0a', 5],
      ['0b', 1],
    ]);
  });
}
