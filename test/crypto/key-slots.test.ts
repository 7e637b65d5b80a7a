// Key slots and the keyset: the frozen vectors, which were made from the primitives of RFC 9180, and that nothing else
// opens them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSlotPublicKey, slotPrivateKey, slotPublicKey, unwrapRoot, wrapRoot } from '../../src/crypto/key-slots.ts';
import {
  decryptKeyset,
  encryptKeyset,
  type KeysetDocument,
  newKey,
  newKeyset,
} from '../../src/crypto/keyset-encryption.ts';
import { VaultKeys } from '../../src/crypto/vault-keys.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import type { KeySlot, SlotId, SlotName, StoredKeys, VaultId } from '../../src/vault/keys/keyset.ts';
import { flipped, readVectors } from './vectors.ts';

interface Vectors {
  readonly vault_id: VaultId;
  readonly secret: string;
  readonly slot: Omit<KeySlot, 'kind'> & { kind: 'file'; rootVersion: number; sealedRoot: string; mac: string };
  readonly keyset: { readonly version: number; readonly rootVersion: number; readonly sealed: string };
  readonly document: KeysetDocument;
}

const vectors = readVectors<Vectors>('key-slots-v1.json');
const secret = Buffer.from(vectors.secret, 'base64');
const stored: StoredKeys = {
  keyCheck: vectors.document.check,
  vaultId: vectors.vault_id,
  keyset: { ...vectors.keyset, sealed: Buffer.from(vectors.keyset.sealed, 'base64') },
  slots: [{ ...vectors.slot, sealedRoot: Buffer.from(vectors.slot.sealedRoot, 'base64') }],
};
const [slot] = stored.slots;
assert.ok(slot);
const base64 = (key: { export(): Buffer }) => key.export().toString('base64');

test('the frozen secret opens the frozen slot and keyset', () => {
  assert.equal(slotPublicKey(slotPrivateKey(secret)), vectors.slot.publicKey);
  const keys = VaultKeys.open(stored, secret);
  assert.ok(keys);
  const { document } = vectors;
  assert.equal(keys.vaultId, document.vaultId);
  assert.equal(keys.checkValue, document.check);
  assert.deepEqual([keys.version, keys.rootVersion], [7, 3]);
  assert.deepEqual(keys.dataKeyIds, ['0a1b2c3d', '4e5f6071']);
  assert.equal(base64(keys.currentDataKey), document.data[1]?.key);
  assert.equal(base64(keys.dataKey(Buffer.from('0a1b2c3d', 'hex')) ?? assert.fail()), document.data[0]?.key);
  assert.equal(keys.dataKey(Buffer.from('00000000', 'hex')), null);
  assert.equal(base64(keys.auditAt(0)), document.audit[0]?.key);
  assert.equal(base64(keys.auditAt(41)), document.audit[0]?.key);
  assert.equal(base64(keys.auditAt(42)), document.audit[1]?.key);
  assert.equal(base64(keys.audit), document.audit[1]?.key);
  assert.equal(base64(keys.row), document.row);
  assert.equal(base64(keys.challenge), document.challenge);
  assert.deepEqual(
    keys.signing.map(({ generation, privateKey }) => [
      generation,
      Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url').toString('base64'),
    ]),
    document.signing.map(({ generation, seed }) => [generation, seed]),
  );
  assert.equal(keys.isSlotAuthentic(slot), true);
});

test('no other secret opens a slot, and neither does a slot or keyset with any bit altered', () => {
  for (const { altered } of flipped(secret)) assert.equal(VaultKeys.open(stored, altered), null);
  for (const { altered, bit } of flipped(slot.sealedRoot)) {
    // SOURCE: RFC 7748, section 5: the last bit of a public value is ignored, but the shared key covers it.
    assert.equal(VaultKeys.open({ ...stored, slots: [{ ...slot, sealedRoot: altered }] }, secret), null, `bit ${bit}`);
  }
  const { keyset } = stored;
  assert.ok(keyset);
  for (const { altered } of flipped(keyset.sealed)) {
    assert.equal(VaultKeys.open({ ...stored, keyset: { ...keyset, sealed: altered } }, secret), null);
  }
});

test('a slot or a keyset does not open under another id, version or vault', () => {
  const { keyset } = stored;
  assert.ok(keyset);
  const others: StoredKeys[] = [
    { ...stored, vaultId: 'AAAAAAAAAAAAAAAAAAAAAA' as VaultId },
    { ...stored, slots: [{ ...slot, id: 'another' as SlotId }] },
    { ...stored, slots: [{ ...slot, rootVersion: 4 }], keyset: { ...keyset, rootVersion: 4 } },
    { ...stored, keyset: { ...keyset, version: 8 } },
    { ...stored, slots: [] },
    { ...stored, keyset: null },
  ];
  for (const [index, other] of others.entries()) assert.equal(VaultKeys.open(other, secret), null, `${index}`);
});

function slotOf(name: string, own: Uint8Array): KeySlot {
  const publicKey = slotPublicKey(slotPrivateKey(own));
  return { id: name as SlotId, name: name as SlotName, kind: 'file', parameters: {}, publicKey, createdAt: 0 };
}

const secrets = new Map(['a', 'b', 'c', 'd'].map((name, index) => [name, new Uint8Array(32).fill(index + 1)]));

/** What is stored after the slots were added and the others removed. */
function storedWith(keys: VaultKeys, names: readonly string[]): StoredKeys {
  const slots = names.map((name) => keys.wrap(slotOf(name, secrets.get(name) ?? assert.fail())));
  return { keyCheck: keys.checkValue, vaultId: keys.vaultId, keyset: keys.encryptedKeyset(), slots };
}

test('any one slot opens in every combination of four, and a removed one never does', () => {
  const names = [...secrets.keys()];
  for (let subset = 1; subset < 16; subset++) {
    const kept = names.filter((_, index) => (subset & (1 << index)) !== 0);
    const keys = VaultKeys.create(0, new Uint8Array(32));
    for (const name of names) keys.edit({ kind: 'addSlot', id: name as SlotId });
    for (const name of names) if (!kept.includes(name)) keys.edit({ kind: 'removeSlot', id: name as SlotId });
    // The rows of removed slots were kept and inserted again.
    const all = storedWith(keys, names);
    for (const [name, own] of secrets) {
      const opened = VaultKeys.open(all, own);
      assert.equal(opened?.vaultId ?? null, kept.includes(name) ? keys.vaultId : null, `${subset} ${name}`);
    }
    for (const name of kept) {
      const alone = { ...all, slots: all.slots.filter(({ id }) => id === name) };
      assert.ok(VaultKeys.open(alone, secrets.get(name) ?? assert.fail()), `${subset} ${name} alone`);
    }
  }
});

test('a rotated root key opens with every slot that was wrapped again, and a node follows it with its slot', () => {
  const keys = VaultKeys.create(0, new Uint8Array(32));
  for (const id of ['a', 'b']) keys.edit({ kind: 'addSlot', id: id as SlotId });
  const before = storedWith(keys, ['a', 'b']);
  const node = VaultKeys.open(before, secrets.get('a') ?? assert.fail());
  assert.ok(node);
  keys.edit({ kind: 'replaceRoot', root: new Secret(Buffer.alloc(32, 9).toString('base64')) });
  const after = storedWith(keys, ['a', 'b']);
  assert.equal(node.refresh(after), true);
  assert.deepEqual([node.rootVersion, node.version], [keys.rootVersion, keys.version]);
  assert.equal(node.refresh(before), false, 'a keyset that was rolled back');
  // The former row of the slot, or the former keyset, does not open with the new one.
  assert.equal(VaultKeys.open({ ...after, slots: before.slots }, secrets.get('a') ?? assert.fail()), null);
  assert.equal(VaultKeys.open({ ...before, slots: after.slots }, secrets.get('a') ?? assert.fail()), null);
});

test('a running node takes over no keyset that another author has wrapped for its slot', () => {
  const keys = VaultKeys.create(0, new Uint8Array(32));
  keys.edit({ kind: 'addSlot', id: 'a' as SlotId });
  keys.edit({ kind: 'addSigningKey', seed: new Secret(newKey()) });
  const before = storedWith(keys, ['a']);
  const secret = secrets.get('a') ?? assert.fail();
  const open = (): VaultKeys => VaultKeys.open(before, secret) ?? assert.fail();
  const { keyset } = before;
  const root = unwrapRoot(before.slots[0] ?? assert.fail(), keys.vaultId, slotPrivateKey(secret));
  assert.ok(keyset !== null && root !== null);
  const document = decryptKeyset(root, keys.vaultId, keyset) ?? assert.fail();
  /** The document under another root key, which is encrypted to the public key of the slot. */
  const reencrypted = (forged: KeysetDocument): StoredKeys => {
    const own = Buffer.alloc(32, 8);
    const versions = { version: keyset.version + 1, rootVersion: keyset.rootVersion + 1 };
    const slots = before.slots.map((slot) => ({ ...slot, ...wrapRoot(slot, keys.vaultId, own, versions.rootVersion) }));
    return { ...before, keyset: encryptKeyset(own, forged, versions), slots };
  };
  assert.equal(open().refresh(reencrypted(document)), true, 'the same keys');
  const other = newKeyset(0);
  const [first] = document.signing;
  const forgeries: readonly Partial<KeysetDocument>[] = [
    { ...other, vaultId: document.vaultId, check: document.check, slots: document.slots },
    { check: other.check },
    { row: other.row },
    { challenge: other.challenge },
    { audit: other.audit },
    { audit: [] },
    { signing: other.signing },
    { signing: first === undefined ? [] : [first] },
  ];
  for (const [index, forged] of forgeries.entries()) {
    const node = open();
    assert.equal(node.refresh(reencrypted({ ...document, ...forged })), false, `${index}`);
    assert.deepEqual([node.version, node.rootVersion], [keyset.version, keyset.rootVersion]);
  }
});

test('a slot row is authentic only as it was written', () => {
  const keys = VaultKeys.open(stored, secret);
  assert.ok(keys);
  const altered = [
    { name: 'other' as SlotName },
    { kind: 'systemd' as const },
    { parameters: { credential: 'x' } },
    { publicKey: vectors.document.row },
    { createdAt: 0 },
    { rootVersion: 2 },
    { sealedRoot: Buffer.alloc(80) },
    { id: 'other' as SlotId },
  ];
  for (const change of altered) assert.equal(keys.isSlotAuthentic({ ...slot, ...change }), false);
});

test('a slot cannot have a public key of small order or of another length', () => {
  assert.equal(isSlotPublicKey(vectors.slot.publicKey), true);
  for (const text of [Buffer.alloc(32).toString('base64'), Buffer.alloc(31, 9).toString('base64'), '', 'x']) {
    assert.equal(isSlotPublicKey(text), false, text);
  }
});
