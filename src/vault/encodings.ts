/** What comes in as base64: public keys and signatures. */
import { invalidRequest } from '../core/errors.ts';
import { decodeStrictBase64 } from '../crypto/keys.ts';

export { parsePublicKey } from '../crypto/ed25519.ts';

/** Strict base64. One of the wrong length is a failed try, not a malformed request. @throws INVALID_REQUEST */
export function parseSignature(text: string): Uint8Array {
  const bytes = decodeStrictBase64(text);
  if (bytes === null || bytes.length === 0) throw invalidRequest('signature', 'must be base64, in its one spelling');
  return bytes;
}
