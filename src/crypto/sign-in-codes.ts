/**
 * Stateless codes for browser sign-in: enrolment codes, codes that hand a session over, and the state of a sign-in at a
 * provider. Each is base64url of its fields and a MAC of 128 bits. SOURCE: docs/formats.md, "Sign-in codes".
 */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { AgentId, ChallengeId, TokenHash } from '../core/names.ts';
import { decodeChallengeId, toUuid } from './tokens.ts';

const MAC_BYTES = 16;
const ID_BYTES = 16;
const TIME_BYTES = 6;
const HASH_BYTES = 32;

function macOf(key: KeyObject, kind: string, ...fields: readonly string[]): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([`leasehold-${kind}-v1`, ...fields]))
    .digest();
}

function toCode(body: Uint8Array, mac: Buffer): string {
  return Buffer.concat([body, mac.subarray(0, MAC_BYTES)]).toString('base64url');
}

/** Null if the text has another length, or does not re-encode to itself. */
function fromCode(text: string, bodyBytes: number): { readonly body: Buffer; readonly mac: Buffer } | null {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== bodyBytes + MAC_BYTES || bytes.toString('base64url') !== text) return null;
  return { body: bytes.subarray(0, bodyBytes), mac: bytes.subarray(bodyBytes) };
}

const isMac = (mac: Buffer, expected: Buffer): boolean => timingSafeEqual(mac, expected.subarray(0, MAC_BYTES));
const toBytes = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex');

/** `state`: additional text to which the code is bound. */
export function encodeEnrolment(key: KeyObject, operatorId: AgentId, expiresAt: number, state: string): string {
  const time = Buffer.alloc(TIME_BYTES);
  time.writeUIntBE(expiresAt, 0, TIME_BYTES);
  const body = Buffer.concat([time, toBytes(operatorId)]);
  return toCode(body, macOf(key, 'enrolment', body.toString('base64'), state));
}

export interface EnrolmentCode {
  readonly operatorId: AgentId;
  readonly expiresAt: number;
  isFor(state: string): boolean;
}

/** Decodes a code without authenticating it; null for any other text. */
export function decodeEnrolment(key: KeyObject, text: string): EnrolmentCode | null {
  const parts = fromCode(text, TIME_BYTES + ID_BYTES);
  if (parts === null) return null;
  const { body, mac } = parts;
  return {
    operatorId: toUuid(body.subarray(TIME_BYTES)) as AgentId,
    expiresAt: body.readUIntBE(0, TIME_BYTES),
    isFor: (state) => isMac(mac, macOf(key, 'enrolment', body.toString('base64'), state)),
  };
}

export interface IssuedId {
  readonly id: ChallengeId;
  readonly issuedAt: number;
}

/** `tokenHash`: the hash of the token of the session that is handed over. */
export function encodeHandoff(key: KeyObject, id: ChallengeId, tokenHash: TokenHash): string {
  const body = Buffer.concat([toBytes(id), Buffer.from(tokenHash, 'base64')]);
  return toCode(body, macOf(key, 'handoff', body.toString('base64')));
}

export function decodeHandoff(key: KeyObject, text: string): (IssuedId & { readonly tokenHash: TokenHash }) | null {
  const parts = fromCode(text, ID_BYTES + HASH_BYTES);
  if (parts === null || !isMac(parts.mac, macOf(key, 'handoff', parts.body.toString('base64')))) return null;
  const id = toUuid(parts.body.subarray(0, ID_BYTES)) as ChallengeId;
  const decoded = decodeChallengeId(key, id);
  if (decoded === null) return null;
  return { id, issuedAt: decoded.issuedAt, tokenHash: parts.body.subarray(ID_BYTES).toString('base64') as TokenHash };
}

/** The state of a sign-in at a provider that redirects to the URI. */
export function encodeState(key: KeyObject, id: ChallengeId, redirectUri: string): string {
  return toCode(toBytes(id), macOf(key, 'oidc-state', id, redirectUri));
}

export function decodeState(key: KeyObject, text: string, redirectUri: string): IssuedId | null {
  const parts = fromCode(text, ID_BYTES);
  if (parts === null) return null;
  const id = toUuid(parts.body) as ChallengeId;
  const decoded = decodeChallengeId(key, id);
  if (decoded === null || !isMac(parts.mac, macOf(key, 'oidc-state', id, redirectUri))) return null;
  return { id, issuedAt: decoded.issuedAt };
}

/** The PKCE verifier and the nonce of the sign-in, which only this server can derive. */
export function stateSecrets(key: KeyObject, id: ChallengeId): { readonly verifier: string; readonly nonce: string } {
  return {
    verifier: macOf(key, 'oidc-verifier', id).toString('base64url'),
    nonce: macOf(key, 'oidc-nonce', id).toString('base64url'),
  };
}
