/**
 * Cosignatures of witnesses on checkpoints: timestamped Ed25519 signatures.
 * SOURCE: https://c2sp.org/tlog-cosignature, "Ed25519 signed message"; https://c2sp.org/signed-note.
 */
import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { decodeStrictBase64 } from './encoding.ts';
import { parseNote } from './signed-note.ts';

const ED25519_COSIGNATURE = 0x04;
const KEY_ID_BYTES = 4;
const TIME_BYTES = 8;
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

export interface Witness {
  readonly name: string;
  readonly keyId: Buffer;
  readonly publicKey: KeyObject;
}

/** Parses `name+key id in hexadecimal+base64(0x04 ‖ public key)`; null for any other text. */
export function parseWitnessKey(text: string): Witness | null {
  const [name, id, ...rest] = text.split('+');
  const key = decodeStrictBase64(rest.join('+'));
  if (!name || /\s/u.test(name) || key?.length !== 33 || key[0] !== ED25519_COSIGNATURE) return null;
  const keyId = hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), key]), 'buffer').subarray(0, KEY_ID_BYTES);
  if (keyId.toString('hex') !== id) return null;
  const der = Buffer.concat([SPKI_PREFIX, key.subarray(1)]);
  return { name, keyId, publicKey: createPublicKey({ key: der, format: 'der', type: 'spki' }) };
}

/**
 * The line of the response with the witness's valid signature over the note's text; null if it has none. One line: each
 * key has one signature on a note.
 */
export function findCosignature(note: string, response: string, witness: Witness): string | null {
  const text = parseNote(note)?.text;
  const parsed = parseNote(`${note}${response}`);
  // WHY the comparison: a response with an empty line would move the end of the text.
  if (text === undefined || parsed?.text !== text) return null;
  const own = parsed.signatures.find(
    ({ name, signature }) =>
      name === witness.name &&
      signature.subarray(0, KEY_ID_BYTES).equals(witness.keyId) &&
      isCosignature(text, signature.subarray(KEY_ID_BYTES), witness.publicKey),
  );
  return own === undefined ? null : `${own.line}\n`;
}

function isCosignature(text: string, signature: Buffer, publicKey: KeyObject): boolean {
  if (signature.length <= TIME_BYTES) return false;
  const message = `cosignature/v1\ntime ${signature.readBigUInt64BE()}\n${text}`;
  return verify(null, Buffer.from(message), publicKey, signature.subarray(TIME_BYTES));
}
