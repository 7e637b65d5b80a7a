/**
 * Signed notes, checkpoints in the form of notes, and receipts, which prove that an entry belongs to a checkpoint.
 * SOURCE: docs/formats.md, "Checkpoints" and "Receipts".
 */
import { createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import type { SigningKey } from './keyset-encryption.ts';
import { decodeStrictBase64 } from './primitives.ts';
import { decodeHash, encodeHash, type TreeHash, type TreeHead } from './tree.ts';
import type { VaultKeys } from './vault-keys.ts';

const ED25519 = 0x01;
const KEY_ID_BYTES = 4;
const PUBLIC_KEY_BYTES = 32;
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const SIGNATURE_LINE = /^— ([^\s+]+) ([A-Za-z0-9+/]+=*)$/u;
/** A control character that is not a line feed. */
const FORBIDDEN_CONTROL = /[^\P{Cc}\n\x7f-\x9f]/u;
/** The number of signatures that every verifier accepts. */
const MAX_SIGNATURES = 16;

export interface NoteVerifier {
  readonly name: string;
  readonly publicKey: KeyObject;
}

export interface NoteSigner extends NoteVerifier {
  readonly privateKey: KeyObject;
}

function rawKey(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(SPKI_PREFIX.length);
}

/** The first four bytes of SHA-256(name ‖ 0x0A ‖ 0x01 ‖ public key). */
function keyId({ name, publicKey }: NoteVerifier): Buffer {
  const covered = Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([ED25519]), rawKey(publicKey)]);
  return hash('sha256', covered, 'buffer').subarray(0, KEY_ID_BYTES);
}

/** The public key in the form that verifiers accept: `name+key id in hexadecimal+base64(0x01 ‖ public key)`. */
export function verifierKey(verifier: NoteVerifier): string {
  const key = Buffer.concat([Buffer.from([ED25519]), rawKey(verifier.publicKey)]);
  return `${verifier.name}+${keyId(verifier).toString('hex')}+${key.toString('base64')}`;
}

/** The inverse of `verifierKey`; null for any other text. */
export function parseVerifierKey(text: string): NoteVerifier | null {
  const [name, id, ...rest] = text.trim().split('+');
  // Base64 may contain plus characters.
  const key = decodeStrictBase64(rest.join('+'));
  if (!name || /\s/u.test(name) || key === null) return null;
  if (key.length !== 1 + PUBLIC_KEY_BYTES || key[0] !== ED25519) return null;
  const der = Buffer.concat([SPKI_PREFIX, key.subarray(1)]);
  const verifier = { name, publicKey: createPublicKey({ key: der, format: 'der', type: 'spki' }) };
  return keyId(verifier).toString('hex') === id ? verifier : null;
}

/** The note with one signature. `text` ends with a line feed. */
export function signNote(text: string, signer: NoteSigner): string {
  const signature = Buffer.concat([keyId(signer), sign(null, Buffer.from(text), signer.privateKey)]);
  return `${text}\n— ${signer.name} ${signature.toString('base64')}\n`;
}

interface ParsedNote {
  /** The text of the note, which ends with a line feed. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly signature: Buffer }[];
}

/** Parses a signed note; null for any other text. Checks no signature. */
function parseNote(note: string): ParsedNote | null {
  const end = note.lastIndexOf('\n\n');
  if (end < 0 || !note.endsWith('\n') || FORBIDDEN_CONTROL.test(note)) return null;
  const lines = note.slice(end + 2, -1).split('\n');
  if (lines.length > MAX_SIGNATURES) return null;
  const found = lines.map((line) => SIGNATURE_LINE.exec(line));
  const signatures = found.flatMap((match) => {
    // WHY strict: another spelling of the signature would be a different note with the same meaning.
    const signature = decodeStrictBase64(match?.[2] ?? '');
    return match?.[1] === undefined || signature === null || signature.length <= KEY_ID_BYTES
      ? []
      : [{ name: match[1], signature: Buffer.from(signature) }];
  });
  return signatures.length === lines.length ? { text: note.slice(0, end + 1), signatures } : null;
}

/** The text of the note, if it has a valid signature of the key and no invalid one; otherwise null. */
export function openNote(note: string, verifier: NoteVerifier): string | null {
  const parsed = parseNote(note);
  if (parsed === null) return null;
  const id = keyId(verifier);
  const own = parsed.signatures.filter(
    ({ name, signature }) => name === verifier.name && signature.subarray(0, KEY_ID_BYTES).equals(id),
  );
  const message = Buffer.from(parsed.text);
  const isValid = own.every(({ signature }) =>
    verify(null, message, verifier.publicKey, signature.subarray(KEY_ID_BYTES)),
  );
  return own.length > 0 && isValid ? parsed.text : null;
}

/** `origin` names the audit log. After an accepted rollback the audit log continues under another origin. */
export interface LogCheckpoint extends TreeHead {
  readonly origin: string;
}

const SIZE = /^(0|[1-9][0-9]{0,15})$/;

/**
 * The signer of the audit log's checkpoints; its name is their origin. The origin contains the number of the signing
 * key, except for the first one. The key changes when a rollback is accepted, and verifiers then treat the audit log as
 * another one.
 */
export function checkpointSigner(keys: Pick<VaultKeys, 'vaultId' | 'signing'>, generation?: number): LogSigner {
  const key =
    generation === undefined ? keys.signing.at(-1) : keys.signing.find((each) => each.generation === generation);
  if (key === undefined) throw new Error('the keyset has no such signing key');
  const suffix = key.generation === 1 ? '' : `/${key.generation}`;
  return { ...key, name: `leasehold/${keys.vaultId}${suffix}` };
}

export interface LogSigner extends NoteSigner, SigningKey {}

/** The signed checkpoint. The key's name is the origin. */
export function signCheckpoint({ size, root }: TreeHead, signer: NoteSigner): string {
  return signNote(`${signer.name}\n${size}\n${encodeHash(root)}\n`, signer);
}

/** Null if the note has no valid signature of the key, or is not a checkpoint of the key's origin. */
export function openCheckpoint(note: string, verifier: NoteVerifier): LogCheckpoint | null {
  const text = openNote(note, verifier);
  const checkpoint = text === null ? null : parseCheckpoint(text);
  return checkpoint?.origin === verifier.name ? checkpoint : null;
}

/** Reads a note's text without checking its signature; null if it is not a checkpoint. Extension lines are ignored. */
export function parseCheckpoint(text: string): LogCheckpoint | null {
  const [origin, size, rootText] = text.split('\n');
  const root = rootText === undefined ? null : decodeHash(rootText);
  if (!origin || size === undefined || !SIZE.test(size) || root === null) return null;
  return Number.isSafeInteger(Number(size)) ? { origin, size: Number(size), root } : null;
}

// Receipts: the proof that an entry is in the audit log, with the checkpoint that it leads to, as one text. A third
// party verifies it with only the public key. The extra data is the leaf's data: the entry's MAC. SOURCE:
// https://c2sp.org/tlog-proof; docs/formats.md, "Receipts".

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';

export interface ReceiptParts {
  readonly seq: number;
  /** Base64 of the entry's MAC. */
  readonly hmac: string;
  readonly proof: readonly TreeHash[];
  readonly checkpoint: string;
}

export function formatReceipt({ seq, hmac, proof, checkpoint }: ReceiptParts): string {
  return [FIRST_LINE, `extra ${hmac}`, `index ${seq - 1}`, ...proof.map(encodeHash), '', checkpoint].join('\n');
}
