/** Tokens of 256 bits: `lha_` for the administrator, `lhs_` for a session. Only their hashes are stored. */
import { hash, randomBytes } from 'node:crypto';
import type { TokenHash } from '../core/names.ts';
import { Secret } from '../core/secret.ts';

const TOKEN_BYTES = 32;

export function newToken(prefix: 'lha_' | 'lhs_'): Secret {
  return new Secret(prefix + randomBytes(TOKEN_BYTES).toString('base64url'));
}

/** Base64 of SHA-256. */
export function hashToken(token: string): TokenHash {
  return hash('sha256', token, 'base64') as TokenHash;
}
