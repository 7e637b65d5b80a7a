/**
 * Challenges, which need no storage to issue: the id contains the time and a MAC, and the nonce is derived from the id.
 * Id, as a UUID of version 8: milliseconds (48 bits) | version (4) | random (12) | variant (2) | masked flag (1) |
 * random (13) | MAC (48). The flag says whether the name was a registered agent's; the mask keeps that from the client.
 * SOURCE: docs/decisions.md, "Agents and sessions"; RFC 9562, section 5.8; docs/formats.md.
 */
import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ChallengeId } from '../core/names.ts';

const BODY_BYTES = 10;
const MAC_BYTES = 6;
const FLAG_BIT = 0x20;

export interface DecodedChallenge {
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  readonly wasIssuedToAgent: boolean;
}

function macOf(key: KeyObject, label: string, body: Uint8Array): Buffer {
  return createHmac('sha256', key).update(label).update(body).digest();
}

/** The mask of the flag: a bit of a MAC over the body with the flag cleared. */
function flagMask(key: KeyObject, body: Uint8Array): number {
  const cleared = Buffer.from(body);
  cleared[8] = (cleared[8] ?? 0) & ~FLAG_BIT;
  return (macOf(key, 'flag', cleared)[0] ?? 0) & FLAG_BIT;
}

function toUuid(bytes: Buffer): ChallengeId {
  const hex = bytes.toString('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return parts.join('-') as ChallengeId;
}

export function encodeChallengeId(key: KeyObject, issuedAt: number, isForAgent: boolean): ChallengeId {
  const body = Buffer.alloc(BODY_BYTES);
  body.writeUIntBE(issuedAt, 0, 6);
  randomBytes(4).copy(body, 6);
  body[6] = 0x80 | ((body[6] ?? 0) & 0x0f);
  body[8] = 0x80 | ((body[8] ?? 0) & 0x1f);
  body[8] |= (isForAgent ? FLAG_BIT : 0) ^ flagMask(key, body);
  return toUuid(Buffer.concat([body, macOf(key, 'id', body).subarray(0, MAC_BYTES)]));
}

/** Null for an id with an invalid MAC. */
export function decodeChallengeId(key: KeyObject, id: ChallengeId): DecodedChallenge | null {
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex');
  const body = bytes.subarray(0, BODY_BYTES);
  if (!timingSafeEqual(macOf(key, 'id', body).subarray(0, MAC_BYTES), bytes.subarray(BODY_BYTES))) return null;
  const flag = ((body[8] ?? 0) & FLAG_BIT) ^ flagMask(key, body);
  return { issuedAt: body.readUIntBE(0, 6), wasIssuedToAgent: flag !== 0 };
}

/**
 * The 32 bytes to be signed. `subject` names the agent by its immutable id, so that an agent registered later under the
 * same name cannot use an old challenge.
 */
export function deriveNonce(key: KeyObject, id: ChallengeId, subject: string): Buffer {
  return createHmac('sha256', key).update('nonce').update(id).update(subject).digest();
}
