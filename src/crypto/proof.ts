/**
 * A service proves to a command that it serves a data directory with an HMAC over the command's nonce, under a key in a
 * file of that directory. Neither side sends the key.
 */
import { createHmac, randomBytes } from 'node:crypto';

const BYTES = 32;
const PURPOSE = 'leasehold-data-dir-proof-v1';

/** Base64 of 256 random bits, for a key or a nonce. */
export const newProofText = (): string => randomBytes(BYTES).toString('base64');

/** Strict base64 of 32 bytes. */
export function isProofText(text: string): boolean {
  return /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text);
}

/** Base64. The MAC covers the address, so that a service at another address cannot relay the proof. */
export function serviceProof(key: string, nonce: string, address: string): string {
  const covered = JSON.stringify([PURPOSE, nonce, address]);
  return createHmac('sha256', Buffer.from(key, 'base64')).update(covered).digest('base64');
}
