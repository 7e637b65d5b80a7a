/**
 * Tokens of 256 bits: `lha_` for the administrator, `lhs_` for a session, `lhu_` for a use lease. Only their hashes are
 * stored.
 */
import { createHmac, hash, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ChallengeId, TokenHash } from '../core/names.ts';
import { Secret } from '../vault/credentials/credential.ts';
import { timingSafeEqualText } from './primitives.ts';

const TOKEN_BYTES = 32;

export function newToken(prefix: 'lha_' | 'lhs_'): Secret {
  return new Secret(prefix + randomBytes(TOKEN_BYTES).toString('base64url'));
}

/** Base64 of SHA-256. */
export function hashToken(token: string): TokenHash {
  return hash('sha256', token, 'base64') as TokenHash;
}

const NONCE_BYTES = 16;
const USE_TOKEN = /lhu_([A-Za-z0-9_-]{43})$/;

export type UseTokenBinding = readonly [agentId: string, path: string];

/**
 * The token of a use lease: a nonce and a MAC, of 128 bits each. WHY a MAC: the row of a lease has none, so an edit of
 * the database could give a lease of any agent a token that the editor knows.
 */
export function newUseToken(rowKey: KeyObject, prefix: string, nonce: Uint8Array, binding: UseTokenBinding): Secret {
  const token = Buffer.concat([nonce, useTokenMac(rowKey, nonce, binding)]);
  return new Secret(`${prefix}lhu_${token.toString('base64url')}`);
}

export function newUseTokenNonce(): Uint8Array {
  return randomBytes(NONCE_BYTES);
}

export function isUseTokenOf(rowKey: KeyObject, token: string, binding: UseTokenBinding): boolean {
  const bytes = Buffer.from(USE_TOKEN.exec(token)?.[1] ?? '', 'base64url');
  const expected = useTokenMac(rowKey, bytes.subarray(0, NONCE_BYTES), binding);
  return timingSafeEqualText(bytes.subarray(NONCE_BYTES).toString('base64'), expected.toString('base64'));
}

function useTokenMac(rowKey: KeyObject, nonce: Uint8Array, binding: UseTokenBinding): Buffer {
  const text = JSON.stringify(['leasehold-use-token-v1', Buffer.from(nonce).toString('base64'), ...binding]);
  return createHmac('sha256', rowKey).update(text).digest().subarray(0, NONCE_BYTES);
}

// Challenges, which are issued without storage: the id contains the time and a MAC, and the nonce is derived from the
// id. Id, as a UUID of version 8: milliseconds (48 bits) | version (4) | random (12) | variant (2) | masked
// flag (1) | random (13) | MAC (48). The flag tells whether the name belonged to a registered agent; the mask hides
// that from the client. SOURCE: docs/decisions.md, "Agents and sessions"; RFC 9562, section 5.8; docs/formats.md.

const BODY_BYTES = 10;
const MAC_BYTES = 6;
const FLAG_BIT = 0x20;

export interface DecodedChallenge {
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

export function toUuid(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export function encodeChallengeId(key: KeyObject, issuedAt: number, isForAgent: boolean): ChallengeId {
  const body = Buffer.alloc(BODY_BYTES);
  body.writeUIntBE(issuedAt, 0, 6);
  randomBytes(4).copy(body, 6);
  body[6] = 0x80 | ((body[6] ?? 0) & 0x0f);
  body[8] = 0x80 | ((body[8] ?? 0) & 0x1f);
  body[8] |= (isForAgent ? FLAG_BIT : 0) ^ flagMask(key, body);
  return toUuid(Buffer.concat([body, macOf(key, 'id', body).subarray(0, MAC_BYTES)])) as ChallengeId;
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
 * The 32 bytes to be signed. `subject` is the agent's immutable id, so that an agent that is registered later under the
 * same name cannot use an earlier challenge.
 */
export function deriveNonce(key: KeyObject, id: ChallengeId, subject: string): Buffer {
  return createHmac('sha256', key).update('nonce').update(id).update(subject).digest();
}

// A server proves to a command that it serves a data directory, with an HMAC over the command's nonce under a key in a
// file of that directory. Neither side sends the key.

const BYTES = 32;
const PURPOSE = 'leasehold-data-dir-proof-v1';

/** Base64 of 256 random bits, for a key or a nonce. */
export const newProofText = (): string => randomBytes(BYTES).toString('base64');

/** Whether the text is strict base64 of 32 bytes. */
export function isProofText(text: string): boolean {
  return /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text);
}

/** The proof in base64. The MAC covers the address, so that a server at another address cannot relay it. */
export function serviceProof(key: string, nonce: string, address: string): string {
  const covered = JSON.stringify([PURPOSE, nonce, address]);
  return createHmac('sha256', Buffer.from(key, 'base64')).update(covered).digest('base64');
}
