/**
 * The keys of an open vault. The keyset can change while the server runs: the ledger changes a copy within a batch, and
 * replaces the keys with it when the batch is written. Callers therefore read a key where they use it, and never store
 * one.
 */
import { hash, type KeyObject } from 'node:crypto';
import { ApiError } from '../engine/errors.ts';
import type {
  EncryptedKeyset,
  InitialKeys,
  KeySlot,
  KeysetEdit,
  SlotId,
  StoredKeys,
  VaultId,
  WrappedKeySlot,
} from '../vault/keys/keyset.ts';
import { type AuditKey, type AuditKeys, auditKeyAt } from './chain.ts';
import { slotPrivateKey, wrapRoot } from './key-slots.ts';
import {
  decryptKeyset,
  editKeyset,
  encryptKeyset,
  idNumber,
  isSuccessor,
  type Keyring,
  newKeyset,
  openKeyring,
  type SigningKey,
  toKeyring,
} from './keyset-encryption.ts';
import { decodeStrictBase64, KEY_BYTES, newRootKey, timingSafeEqualText } from './primitives.ts';
import { fieldsMac } from './row-mac.ts';

export class VaultKeys implements AuditKeys {
  #keyring: Keyring | null;
  /** The key of the slot that opened the vault, so that this node can follow a root key rotation by another node. */
  #slotKey: KeyObject | null;

  private constructor(ring: Keyring, slotKey: KeyObject | null = null) {
    this.#keyring = ring;
    this.#slotKey = slotKey;
  }

  get #ring(): Keyring {
    if (this.#keyring === null) throw new ApiError('VAULT_LOCKED', 'The vault is locked.');
    return this.#keyring;
  }

  static create(now: number, secret: Uint8Array): VaultKeys {
    return new VaultKeys(toKeyring(newRootKey(), 1, 1, newKeyset(now)), slotPrivateKey(secret));
  }

  /**
   * Opens the keyset with a slot's secret, or with the private half of its key. Null if no slot opens it, because it
   * was modified, belongs to another vault, or is not in force.
   */
  static open(stored: StoredKeys, secret: Uint8Array | KeyObject): VaultKeys | null {
    const privateKey = secret instanceof Uint8Array ? slotPrivateKey(secret) : secret;
    const ring = openKeyring(stored, privateKey);
    return ring === null ? null : new VaultKeys(ring, privateKey);
  }

  get vaultId(): VaultId {
    return this.#ring.document.vaultId;
  }

  /** Base64. Equals `key_check` of the table `vault`. */
  get checkValue(): string {
    return this.#ring.document.check;
  }

  /** The version of the keyset, which grows with every change. */
  get version(): number {
    return this.#ring.version;
  }

  get rootVersion(): number {
    return this.#ring.rootVersion;
  }

  get currentDataKey(): KeyObject {
    return this.#ring.newestDataKey.key;
  }

  /** The id of the key that encrypts new values: 4 bytes, at the beginning of each value. */
  get currentDataKeyId(): Uint8Array {
    return this.#ring.newestDataKey.id;
  }

  /** The ids of all data keys in hexadecimal, the current one last. */
  get dataKeyIds(): readonly string[] {
    return this.#ring.document.data.map(({ id }) => id);
  }

  /** The key with that id of 4 bytes; null if the vault has no such key. */
  dataKey(id: Uint8Array): KeyObject | null {
    return this.#ring.dataKeys.get(idNumber(id)) ?? null;
  }

  /** The key that authenticates new entries. An auditor may have it. */
  get audit(): KeyObject {
    return this.auditAt(Number.POSITIVE_INFINITY);
  }

  auditAt(seq: number): KeyObject {
    return auditKeyAt(this.#ring.audit, seq);
  }

  /** All audit keys, the first one first. */
  get auditKeys(): readonly AuditKey[] {
    return this.#ring.audit;
  }

  get row(): KeyObject {
    return this.#ring.row;
  }

  get challenge(): KeyObject {
    return this.#ring.challenge;
  }

  /** The keys that sign checkpoints, the current one last. */
  get signing(): readonly SigningKey[] {
    return this.#ring.signing;
  }

  /** The audit log's record of the keyset. SOURCE: docs/formats.md, "State in the log". */
  get state(): string {
    const { version, rootVersion, document } = this.#ring;
    const digest = hash('sha256', JSON.stringify(document), 'base64');
    return fieldsMac(this.row, 'keyset', [this.vaultId, version, rootVersion, digest]);
  }

  /** The ids of the slots in force. */
  get slotIds(): readonly SlotId[] {
    return this.#ring.document.slots;
  }

  /** The private half of the slot that opened the vault; null for a vault that was not opened by a slot. */
  get slotKey(): KeyObject | null {
    return this.#slotKey;
  }

  hasSlot(id: SlotId): boolean {
    return this.#ring.document.slots.includes(id);
  }

  fork(): VaultKeys {
    return new VaultKeys(this.#ring, this.#slotKey);
  }

  edit(edit: KeysetEdit): void {
    const { root, rootVersion, version, document } = this.#ring;
    const isNewRoot = edit.kind === 'replaceRoot';
    this.#keyring = toKeyring(
      isNewRoot ? Buffer.from(edit.root.reveal(), 'base64') : root,
      isNewRoot ? rootVersion + 1 : rootVersion,
      version + 1,
      editKeyset(document, edit),
    );
  }

  /** Takes over the keys of a committed fork, or of another opening of the same vault. */
  replaceWith(other: VaultKeys): void {
    this.#keyring = other.#ring;
    this.#slotKey = other.#slotKey;
  }

  /**
   * Takes over the keys that another node stored. False if they cannot be opened, are older than those of this node, or
   * do not follow from them.
   */
  refresh(stored: StoredKeys): boolean {
    const { keyset, vaultId } = stored;
    if (keyset === null || vaultId !== this.vaultId || keyset.version < this.version) return false;
    const ring = this.#openNewer(stored, keyset);
    // WHY: a root key can be encrypted to a slot with only its public key, but only the holder of these keys can keep
    // them.
    if (ring === null || !isSuccessor(ring.document, this.#ring.document)) return false;
    this.#keyring = ring;
    return true;
  }

  #openNewer(stored: StoredKeys, keyset: EncryptedKeyset): Keyring | null {
    const { root, rootVersion } = this.#ring;
    if (keyset.rootVersion !== rootVersion) return this.#slotKey === null ? null : openKeyring(stored, this.#slotKey);
    const document = decryptKeyset(root, this.vaultId, keyset);
    return document === null ? null : toKeyring(root, rootVersion, keyset.version, document);
  }

  /** Drops the keys; every later use throws. The runtime frees the bytes of keys with their objects. */
  forget(): void {
    this.#ring.root.fill(0);
    this.#keyring = null;
    this.#slotKey = null;
  }

  encryptedKeyset(): EncryptedKeyset {
    const { root, rootVersion, version, document } = this.#ring;
    return encryptKeyset(root, document, { version, rootVersion });
  }

  wrap(slot: KeySlot): WrappedKeySlot & { readonly mac: string } {
    return withMac(this.row, this.vaultId, wrapRoot(slot, this.vaultId, this.#ring.root, this.rootVersion));
  }

  /** Whether the row of a slot is unmodified, and the slot is in force. */
  isSlotAuthentic(slot: WrappedKeySlot & { readonly mac: string }): boolean {
    return this.hasSlot(slot.id) && timingSafeEqualText(withMac(this.row, this.vaultId, slot).mac, slot.mac);
  }

  /** The keys that a new vault stores. The given slots become the slots of the keyset. */
  initial(slots: readonly KeySlot[]): InitialKeys {
    for (const { id } of slots) this.edit({ kind: 'addSlot', id });
    return { vaultId: this.vaultId, keyset: this.encryptedKeyset(), slots: slots.map((slot) => this.wrap(slot)) };
  }
}

function withMac(rowKey: KeyObject, vaultId: VaultId, slot: WrappedKeySlot): WrappedKeySlot & { readonly mac: string } {
  const { id, name, kind, parameters, publicKey, createdAt, rootVersion, sealedRoot } = slot;
  const wrapped = Buffer.from(sealedRoot).toString('base64');
  const fields = [vaultId, id, name, kind, JSON.stringify(parameters), publicKey, createdAt, rootVersion, wrapped];
  return { ...slot, mac: fieldsMac(rowKey, 'key-slot', fields) };
}

/** The 32 bytes of a root key file: base64, with or without one line break. Null for any other text. */
export function parseRootKey(text: string): Uint8Array | null {
  const bytes = decodeStrictBase64(text.replace(/\r?\n$/, ''));
  return bytes?.length === KEY_BYTES ? bytes : null;
}
