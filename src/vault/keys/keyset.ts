/**
 * Key slots and the keyset, as data. Each slot opens the vault without the others: it holds the root key, wrapped for a
 * public key whose private half follows from the slot's secret. The root key encrypts the keyset, which holds all keys.
 * SOURCE: docs/formats.md, "Keys".
 */

import type { Brand } from '../../core/names.ts';
import { invalidRequest } from '../../engine/errors.ts';
import type { Secret } from '../credentials/credential.ts';

/** A random id of the vault: 16 bytes as base64url. */
export type VaultId = Brand<string, 'VaultId'>;
export type SlotId = Brand<string, 'SlotId'>;
export type SlotName = Brand<string, 'SlotName'>;

/** 1 to 63 characters. */
export const SLOT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** @throws INVALID_REQUEST */
export function parseSlotName(text: string, field = 'name'): SlotName {
  if (!SLOT_NAME.test(text))
    throw invalidRequest(field, 'must be 1 to 63 of A-Z a-z 0-9 . _ -, beginning with a letter or a digit');
  return text as SlotName;
}

export const SLOT_KINDS = ['file', 'passphrase', 'shamir', 'aws-kms', 'transit', 'systemd'] as const;
export type SlotKind = (typeof SLOT_KINDS)[number];

/** The kinds that need a person: a start without any other slot leaves the vault locked. */
const ATTENDED_KINDS: readonly SlotKind[] = ['passphrase', 'shamir'];

export function isAttended(kind: SlotKind): boolean {
  return ATTENDED_KINDS.includes(kind);
}

/** What a kind needs to get its secret again, such as a salt. Never the secret itself. */
export type SlotParameters = Readonly<Record<string, string | number>>;

export interface KeySlot {
  readonly id: SlotId;
  readonly name: SlotName;
  readonly kind: SlotKind;
  readonly parameters: SlotParameters;
  /** Base64 of the 32 bytes of an X25519 public key. */
  readonly publicKey: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** A slot as it is stored, with the root key of a version wrapped for its public key. */
export interface WrappedKeySlot extends KeySlot {
  readonly rootVersion: number;
  readonly sealedRoot: Uint8Array;
}

export interface EncryptedKeyset {
  readonly version: number;
  /** The version of the root key that encrypts it. */
  readonly rootVersion: number;
  readonly sealed: Uint8Array;
}

export interface InitialKeys {
  readonly vaultId: VaultId;
  readonly keyset: EncryptedKeyset;
  readonly slots: readonly (WrappedKeySlot & { readonly mac: string })[];
}

export interface StoredKeys {
  /** The check value of the vault; null if the database holds no vault. */
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
  /** Every slot must be wrapped again in the same transaction. */
  | { readonly kind: 'replaceRoot'; readonly root: Secret }
  | { readonly kind: 'addSlot'; readonly id: SlotId }
  | { readonly kind: 'removeSlot'; readonly id: SlotId };
