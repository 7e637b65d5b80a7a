/**
 * Tokens of 256 bits: `lha_` for the administrator, `lhs_` for a session, `lhu_` for a use lease. Only their hashes are
 * stored.
 */
import { createHmac, hash, type KeyObject, randomBytes } from 'node:crypto';
import type { TokenHash } from '../core/names.ts';
import { Secret } from '../core/secret.ts';
import { timingSafeEqualText } from './encoding.ts';

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

/** The holder of a use lease: the agent's id and the credential's path. */
export type UseTokenHolder = readonly [agentId: string, path: string];

/**
 * The token of a use lease: a nonce and a MAC of 128 bits each. WHY a MAC: the row of a lease has none, so an edit of
 * the database could give a lease of any agent a token that the editor knows.
 */
export function newUseToken(rowKey: KeyObject, prefix: string, nonce: Uint8Array, holder: UseTokenHolder): Secret {
  const token = Buffer.concat([nonce, useTokenMac(rowKey, nonce, holder)]);
  return new Secret(`${prefix}lhu_${token.toString('base64url')}`);
}

export function newUseTokenNonce(): Uint8Array {
  return randomBytes(NONCE_BYTES);
}

export function isUseTokenOf(rowKey: KeyObject, token: string, holder: UseTokenHolder): boolean {
  const bytes = Buffer.from(USE_TOKEN.exec(token)?.[1] ?? '', 'base64url');
  const expected = useTokenMac(rowKey, bytes.subarray(0, NONCE_BYTES), holder);
  return timingSafeEqualText(bytes.subarray(NONCE_BYTES).toString('base64'), expected.toString('base64'));
}

function useTokenMac(rowKey: KeyObject, nonce: Uint8Array, holder: UseTokenHolder): Buffer {
  const text = JSON.stringify(['leasehold-use-token-v1', Buffer.from(nonce).toString('base64'), ...holder]);
  return createHmac('sha256', rowKey).update(text).digest().subarray(0, NONCE_BYTES);
}
