/**
 * Seals what an operator is asked to approve. Each request has its own key, derived from the key of rows and its id, so
 * that no key seals twice. SOURCE: docs/formats.md, "Approvals"; RFC 5869; NIST SP 800-38D.
 */
import { createCipheriv, createDecipheriv, hkdfSync, type KeyObject } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const TAG_BYTES = 16;
/** One message per key, so that the nonce may be constant. */
const NONCE = Buffer.alloc(12);

export function sealApprovalRequest(rowKey: KeyObject, id: string, text: string): Uint8Array {
  const cipher = createCipheriv(ALGORITHM, requestKey(rowKey, id), NONCE);
  return Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** Null if it does not authenticate. */
export function unsealApprovalRequest(rowKey: KeyObject, id: string, sealed: Uint8Array): string | null {
  if (sealed.length < TAG_BYTES) return null;
  const decipher = createDecipheriv(ALGORITHM, requestKey(rowKey, id), NONCE, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}

function requestKey(rowKey: KeyObject, id: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', rowKey, '', `leasehold-approval-request-v1:${id}`, KEY_BYTES));
}
