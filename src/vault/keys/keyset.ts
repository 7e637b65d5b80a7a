/**
 * Key slots and the keyset, as data. Each slot opens the vault without the others: it contains the root key, wrapped
 * for a public key whose private half follows from the slot's secret. The root key encrypts the keyset, which contains
 * all keys.
 * SOURCE: docs/formats.md, "Keys".
 */

import * as grammar from '../../core/grammars.ts';
import type { Brand } from '../../core/names.ts';
import { map } from '../../engine/compounds.ts';
import {
  byDefault,
  type Grammar,
  internal,
  type Memory,
  nullable,
  optional,
  setByServer,
  type ValueOf,
} from '../../engine/field.ts';
import { anyText, boolean, bytes, count, integer, oneOf, positive, text, time } from '../../engine/kinds.ts';
import { type DraftOf, resource, shape, stored } from '../../engine/resource.ts';
import type { Secret } from '../credentials/credential.ts';

/** A random id of the vault: 16 bytes as base64url. */
export type VaultId = Brand<string, 'VaultId'>;
export type SlotId = Brand<string, 'SlotId'>;
export type SlotName = Brand<string, 'SlotName'>;

const SLOT_NAME: Grammar<SlotName> = grammar.matching(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
  [1, 63],
  'must be 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit',
);

export const SLOT_KINDS = ['file', 'passphrase', 'shamir', 'aws-kms', 'transit', 'systemd'] as const;
export type SlotKind = (typeof SLOT_KINDS)[number];

/** The kinds that need an operator. If a vault has no slot of another kind, startup leaves it locked. */
const ATTENDED_KINDS: readonly SlotKind[] = ['passphrase', 'shamir'];

export function isAttended(kind: SlotKind): boolean {
  return ATTENDED_KINDS.includes(kind);
}

const SLOT_KEY = grammar.matching(/^./su, [1, 2048], 'must be 1 to 2048 characters');
const slotName = text(SLOT_NAME);
const slotKind = oneOf(SLOT_KINDS);
const slotPublicKey = text(
  { ...grammar.hash(), description: 'Base64 of an X25519 public key.' },
  { wire: 'public_key' },
);
const parameters = map(
  { name: /^[a-z][a-z_]{0,31}$/, max: 32, maxTextLength: 8192, maxInteger: 999_999_999, title: 'SlotParameters' },
  { description: "Parameters from which a slot's secret is computed, such as a salt." },
);

/** Never contains the secret itself. */
export type SlotParameters = Memory<typeof parameters>;

/** The only list of a key slot's fields. */
export const KeySlot = resource('keySlot', {
  table: 'key_slots',
  id: 'id',
  key: 'name',
  maxRows: 1000,
  fields: {
    id: internal(text(grammar.id<SlotId>())),
    name: slotName,
    kind: slotKind,
    parameters,
    publicKey: internal(slotPublicKey),
    createdAt: setByServer(time({ wire: 'created_at' })),
    /** The version of the root key, which is wrapped with the public key. */
    rootVersion: internal(positive()),
    sealedRoot: bytes({ min: 80, max: 80 }),
  },
});
/** A slot as it is stored. */
export type WrappedKeySlot = ValueOf<typeof KeySlot.fields>;
export type KeySlot = Omit<WrappedKeySlot, 'rootVersion' | 'sealedRoot'>;

/** A slot with which an operator can unlock the vault. */
export const AttendedSlot = shape('AttendedSlot', { name: slotName, kind: slotKind, parameters });
export const KeySlotTestRequest = shape('KeySlotTestRequest', { publicKey: optional(slotPublicKey) });
export const KeySlotTest = shape('KeySlotTest', { opens: boolean(), problem: nullable(anyText()) });

/** A slot to add. An attended one has a public key, and the CLI computes its secret again from the parameters. */
export const NewSlot = shape('KeySlotRequest', {
  name: slotName,
  kind: slotKind,
  publicKey: optional(slotPublicKey),
  parameters: byDefault({}, parameters),
  key: optional(text(SLOT_KEY, { description: 'The name of a key or a credential, for its kind.' })),
});
export type NewSlot = DraftOf<typeof NewSlot.fields>;

const ROTATED_KEYS = ['data', 'root', 'audit'] as const;
export const RotateKeyRequest = shape('RotateKeyRequest', {
  key: byDefault('data', oneOf(ROTATED_KEYS, { description: '`data` by default.' })),
});
export const RotatedKey = shape('RotatedKey', { key: oneOf(ROTATED_KEYS) });
export const UnlockRequest = shape('UnlockRequest', {
  secret: anyText({ description: 'Base64 of the secret of a slot, or a share.' }, { minLength: 1, maxLength: 256 }),
});

const KEYSET = {
  /** Counts the changes. */
  version: positive(),
  /** The version of the root key that encrypts it. */
  rootVersion: positive(),
  sealed: bytes({ min: 1, max: 1_048_576 }),
};
export type EncryptedKeyset = ValueOf<typeof KEYSET>;
/** A table with one row. */
export const KEYSET_ROWS = stored({
  table: 'keyset',
  key: ['id'],
  maxRows: 1,
  fields: { id: integer({ min: 1, max: 1 }), ...KEYSET },
});

/** The number of values that each data key has encrypted. */
export const DATA_KEY_ROWS = stored({
  table: 'data_key_seals',
  key: ['keyId'],
  maxRows: 1_000_000,
  fields: {
    keyId: text(grammar.matching(/^[0-9a-f]{8}$/, [8, 8], 'must be 8 hexadecimal digits')),
    seals: count(),
  },
});

export interface InitialKeys {
  readonly vaultId: VaultId;
  readonly keyset: EncryptedKeyset;
  readonly slots: readonly (WrappedKeySlot & { readonly mac: string })[];
}

export interface StoredKeys {
  /** The check value of the vault; null if the database contains no vault. */
  readonly keyCheck: string | null;
  readonly vaultId: VaultId | null;
  readonly keyset: EncryptedKeyset | null;
  readonly slots: readonly (WrappedKeySlot & { readonly mac: string })[];
}

/** A change of the keyset. New keys are 32 random bytes as base64. */
export type KeysetEdit =
  | { readonly kind: 'addDataKey'; readonly key: Secret; readonly createdAt: number }
  /** The key must no longer encrypt any value. */
  | { readonly kind: 'removeDataKey'; readonly id: string }
  /** The key of the entries from `fromSeq` on. */
  | { readonly kind: 'addAuditKey'; readonly key: Secret; readonly fromSeq: number }
  /** The next generation of the key that signs checkpoints. */
  | { readonly kind: 'addSigningKey'; readonly seed: Secret }
  /** The new root key must be wrapped for every slot in the same transaction. */
  | { readonly kind: 'replaceRoot'; readonly root: Secret }
  | { readonly kind: 'addSlot'; readonly id: SlotId }
  | { readonly kind: 'removeSlot'; readonly id: SlotId };
