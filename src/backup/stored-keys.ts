/** The keyset and the key slots in the header of a backup, so that a restore opens them before it inserts a row. */
import type { StoredKeys } from '../vault/keys/keyset.ts';
import { damaged } from './errors.ts';

/** `StoredKeys` as JSON: bytes are base64. */
export interface StoredKeysJson {
  readonly keyCheck: string | null;
  readonly vaultId: string | null;
  readonly keyset: object | null;
  readonly slots: readonly object[];
}

const toText = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

export function encodeStoredKeys({ keyCheck, vaultId, keyset, slots }: StoredKeys): StoredKeysJson {
  return {
    keyCheck,
    vaultId,
    keyset: keyset === null ? null : { ...keyset, sealed: toText(keyset.sealed) },
    slots: slots.map((slot) => ({ ...slot, sealedRoot: toText(slot.sealedRoot) })),
  };
}

/** WHY few checks: what opens is authenticated, and what was altered does not open. @throws BackupError */
export function decodeStoredKeys(json: unknown): StoredKeys {
  if (!isRecord(json) || !Array.isArray(json['slots'])) throw damaged('its keys have an unknown form');
  const { keyCheck, vaultId, keyset, slots } = json;
  const decoded = {
    keyCheck,
    vaultId,
    keyset: isRecord(keyset) ? { ...keyset, sealed: toBytes(keyset['sealed']) } : null,
    slots: slots.map((slot) => {
      if (!isRecord(slot)) throw damaged('a key slot has an unknown form');
      return { ...slot, sealedRoot: toBytes(slot['sealedRoot']) };
    }),
  };
  return decoded as unknown as StoredKeys;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function toBytes(text: unknown): Uint8Array {
  return Buffer.from(typeof text === 'string' ? text : '', 'base64');
}
