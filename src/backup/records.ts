/**
 * The records of a backup: lines of JSON, the same for every store, so that a backup of one store restores to another.
 * The first line is the header. The last line contains the number of rows of each table, and the SHA-256 of all
 * previous lines. `record-reader.ts` reads them.
 * SOURCE: docs/formats.md, "Backups".
 */

import * as grammar from '../core/grammars.ts';
import { Sha256 } from '../crypto/primitives.ts';
import { isRecord } from '../engine/field.ts';
import { mac, rulesOf } from '../store/table.ts';
import { base64, count, either, mapOf, objectOf, parsed, type ValueRule } from '../store/value-rules.ts';
import type { HeadFields } from '../vault/audit/audit-entry.ts';
import { KEYSET_ROWS, KeySlot, type StoredKeys } from '../vault/keys/keyset.ts';
import { damaged } from './errors.ts';

export const BACKUP_FORMAT = 'leasehold-backup-v1';
/** The number of keys in a line of about 64 KiB. */
const KEYS_PER_LINE = 256;

/** A value of a column: bytes are base64. */
export type Cell = string | number | null;

interface VaultRecord {
  readonly keyCheck: string;
  readonly vaultId: string;
  readonly createdAt: number;
  readonly highWaterTime: number;
  readonly head: (HeadFields & { readonly mac: string }) | null;
  readonly highestSeq: number;
}

export interface BackupHeader {
  readonly format: string;
  readonly leasehold: string;
  /** The time of the snapshot in ISO 8601. */
  readonly created_at: string;
  readonly store: string;
  /** The number of the last migration. */
  readonly schema: number;
  readonly vault_id: string;
  /** The head record: the end of the audit log; null if it was deleted. */
  readonly log_end: { readonly seq: number; readonly hmac: string; readonly mac: string } | null;
  readonly key_slots: readonly { readonly name: string; readonly kind: string }[];
  /** The keyset and the key slots, encrypted as they are stored. */
  readonly keys: StoredKeysJson;
  readonly vault: VaultRecord;
  /** The columns of each table. The rows follow in the order of these tables. */
  readonly tables: Readonly<Record<string, readonly string[]>>;
}

/** The private key of an agent that the server made, encrypted with the vault's data key. */
export interface EncryptedAgentKey {
  readonly id: string;
  /** Base64. */
  readonly sealed: string;
}

export interface BackupTotals {
  readonly rows: Readonly<Record<string, number>>;
  readonly agent_keys: number;
}

export type BackupRecord =
  | { readonly kind: 'header'; readonly header: BackupHeader }
  | { readonly kind: 'rows'; readonly table: string; readonly rows: readonly (readonly Cell[])[] }
  | { readonly kind: 'agentKeys'; readonly keys: readonly EncryptedAgentKey[] }
  /** `sha256` is the digest of all previous lines, in hexadecimal. */
  | { readonly kind: 'end'; readonly totals: BackupTotals; readonly sha256: string };

export class BackupWriter {
  readonly #digest = new Sha256();
  readonly #rows: Record<string, number> = {};
  #agentKeys = 0;

  header(header: BackupHeader): Uint8Array {
    for (const table of Object.keys(header.tables)) this.#rows[table] = 0;
    return this.#line(header);
  }

  rows(table: string, rows: readonly (readonly Cell[])[]): Uint8Array {
    this.#rows[table] = (this.#rows[table] ?? 0) + rows.length;
    return this.#line({ table, rows });
  }

  *agentKeys(keys: readonly EncryptedAgentKey[]): Generator<Uint8Array> {
    this.#agentKeys += keys.length;
    for (let at = 0; at < keys.length; at += KEYS_PER_LINE) {
      yield this.#line({ agent_keys: keys.slice(at, at + KEYS_PER_LINE) });
    }
  }

  end(): Uint8Array {
    const totals: BackupTotals = { rows: this.#rows, agent_keys: this.#agentKeys };
    return encode({ end: totals, sha256: this.#digest.hex() });
  }

  #line(record: object): Uint8Array {
    const bytes = encode(record);
    this.#digest.update(bytes);
    return bytes;
  }
}

function encode(record: object): Uint8Array {
  return Buffer.from(`${JSON.stringify(record)}\n`);
}

export const HEAD_RULES: ValueRule = objectOf({
  seq: count,
  hmac: mac,
  mac,
  epoch: count,
  // A peak for each bit of the size.
  tree: base64(0, 64 * 32),
  control: mac,
});

const { id, ...KEYSET } = rulesOf(KEYSET_ROWS.fields);
export const KEYSET_RULES: ValueRule = either(objectOf(KEYSET), objectOf({ ...KEYSET, id }));
export const SLOT_RULES: ValueRule = objectOf({ ...rulesOf(KeySlot.fields), mac });

export const ENCRYPTED_AGENT_KEY_RULES: ValueRule = objectOf({
  id: parsed(grammar.id().parse),
  sealed: base64(1, 8192),
});

export const TOTALS_RULES: ValueRule = objectOf({
  rows: mapOf(/^[a-z_]{1,64}$/, count, 100),
  agent_keys: count,
});

/**
 * `StoredKeys` as JSON, with bytes as base64. The header contains them, so that a restore opens them before it inserts
 * a row.
 */
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

/** WHY few checks: the encryption authenticates the keys, so altered ones do not open. @throws BackupError */
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

function toBytes(text: unknown): Uint8Array {
  return Buffer.from(typeof text === 'string' ? text : '', 'base64');
}
