/**
 * Signed notes: a text, an empty line, and signature lines. Only Ed25519 signatures are made and verified.
 * SOURCE: https://c2sp.org/signed-note; docs/formats.md, "Checkpoints".
 */
import { createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { decodeStrictBase64 } from './encoding.ts';

const ED25519 = 0x01;
const KEY_ID_BYTES = 4;
const PUBLIC_KEY_BYTES = 32;
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const SIGNATURE_LINE = /^— ([^\s+]+) ([A-Za-z0-9+/]+=*)$/u;
/** A control character that is not a line feed. */
const FORBIDDEN_CONTROL = /[^\P{Cc}\n\x7f-\x9f]/u;
/** A note has at most as many signatures as every verifier accepts. */
const MAX_SIGNATURES = 16;

/** A public key with its name. */
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

/** The public key as verifiers take it: `name+key id in hexadecimal+base64(0x01 ‖ public key)`. */
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
  /** Ends with a line feed. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly signature: Buffer }[];
}

/** Null for a text that is not a signed note. Checks no signature. */
function parseNote(note: string): ParsedNote | null {
  const end = note.lastIndexOf('\n\n');
  if (end < 0 || !note.endsWith('\n') || FORBIDDEN_CONTROL.test(note)) return null;
  const lines = note.slice(end + 2, -1).split('\n');
  if (lines.length > MAX_SIGNATURES) return null;
  const found = lines.map((line) => SIGNATURE_LINE.exec(line));
  const signatures = found.flatMap((match) => {
    // WHY strict: another spelling of the signature would be another note with the same meaning.
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
