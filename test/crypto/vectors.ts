/** Frozen vectors. They were made once, without this project's code; no test writes them. */
import { createHmac, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { slotPrivateKey, slotPublicKey, wrapRoot } from '../../src/crypto/key-slots.ts';
import { encryptKeyset } from '../../src/crypto/keyset-encryption.ts';
import { parseRootKey, VaultKeys } from '../../src/crypto/vault-keys.ts';
import type { KeySlot, SlotId, SlotName, VaultId } from '../../src/vault/keys/keyset.ts';

/** The content of the file; its test knows the type. */
export function readVectors<T>(name: string): T {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../vectors', name), 'utf8'));
}

export function keysOf(rootKey: string): VaultKeys {
  const bytes = parseRootKey(rootKey);
  if (bytes === null) throw new Error('the vectors hold no root key');
  return openKeyset(bytes);
}

const VAULT_ID = 'AAECAwQFBgcICQoLDA0ODw' as VaultId;

/** A keyset whose keys follow from the root key, as the vectors have them, opened with a slot. */
function openKeyset(root: Uint8Array): VaultKeys {
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', root, '', `leasehold/v1/${purpose}`, root.length));
  const keyOf = (purpose: string): string => derive(purpose).toString('base64');
  const mac = (text: string): Buffer => createHmac('sha256', derive('check')).update(text).digest();
  const id = 'slot' as SlotId;
  const keyset = encryptKeyset(
    root,
    {
      format: 'leasehold-keyset-v1',
      vaultId: VAULT_ID,
      check: mac('root key check').toString('base64'),
      data: [{ id: mac('seal key id').toString('hex', 0, 4), key: keyOf('seal'), createdAt: 0 }],
      audit: [{ fromSeq: 1, key: keyOf('audit') }],
      row: keyOf('row'),
      challenge: keyOf('challenge'),
      signing: [{ generation: 1, seed: keyOf('signing') }],
      slots: [id],
    },
    { version: 1, rootVersion: 1 },
  );
  const publicKey = slotPublicKey(slotPrivateKey(root));
  const slot: KeySlot = { id, name: 'file' as SlotName, kind: 'file', parameters: {}, publicKey, createdAt: 0 };
  const slots = [{ ...wrapRoot(slot, VAULT_ID, root, 1), mac: '' }];
  const keys = VaultKeys.open({ keyCheck: null, vaultId: VAULT_ID, keyset, slots }, root);
  if (keys === null) throw new Error('the keyset does not open');
  return keys;
}

/** A root key of a test's own: 32 times the byte. */
export function keysFrom(byte: number): VaultKeys {
  return openKeyset(new Uint8Array(32).fill(byte));
}

const MAX_WHOLE_BYTES = 48;

/** Copies of the bytes with one bit altered: each bit of a key or MAC, and one bit of each byte of what is longer. */
export function* flipped(bytes: Uint8Array): Generator<{ altered: Buffer; bit: number }> {
  const isWhole = bytes.length <= MAX_WHOLE_BYTES;
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    if (!isWhole && (bit & 7) !== (bit >> 3) % 8) continue;
    const altered = Buffer.from(bytes);
    altered[bit >> 3] = (altered[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    yield { altered, bit };
  }
}
