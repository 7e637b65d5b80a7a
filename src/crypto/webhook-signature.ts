/** Signatures of webhooks. SOURCE: Standard Webhooks 1.0.0, "Signature scheme". */
import { createHmac } from 'node:crypto';
import { decodeStrictBase64 } from './encoding.ts';

const PREFIX = 'whsec_';
const [MIN_BYTES, MAX_BYTES] = [24, 64];

/** The key in a secret of the form `whsec_<base64>`; null if it has another form, or a length other than 24 to 64. */
export function parseWebhookSecret(text: string): Uint8Array | null {
  const key = decodeStrictBase64(text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text);
  return key !== null && key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : null;
}

/** The header `webhook-signature` of a message. */
export function webhookSignature(key: Uint8Array, id: string, timestampSeconds: number, body: string): string {
  const hmac = createHmac('sha256', key).update(`${id}.${timestampSeconds}.${body}`);
  return `v1,${hmac.digest('base64')}`;
}
