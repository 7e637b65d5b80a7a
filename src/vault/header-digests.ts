/**
 * The cryptography of HTTP headers: Idempotency-Key, of which the store knows nothing but MACs, entity tags, and the
 * metrics token. SOURCE: RFC 9110, section 8.8.3; docs/monitoring.md, "Access".
 */

import type { Idempotency, IdempotencyId, IdempotencyKey } from '../core/idempotency.ts';
import type { AuthContext } from '../core/identity.ts';
import { ADMIN, type TokenHash } from '../core/names.ts';
import { sha256Base64, timingSafeEqualText } from '../crypto/primitives.ts';
import { fieldsMac } from '../crypto/row-mac.ts';
import { hashToken } from '../crypto/tokens.ts';
import { ApiError } from '../engine/errors.ts';
import type { Vault } from './vault.ts';

/** A request as strings in a fixed order. Two requests are equal if and only if all strings are. */
export type RequestTexts = readonly string[];

/**
 * WHY MACs: with a plain hash of a body that contains a short value, a reader of the database could find the value by
 * trial. The id covers the caller's name, so that callers cannot use each other's keys; the batch compares the agent's
 * id too.
 */
export function toIdempotency(
  { keys }: Pick<Vault, 'keys'>,
  auth: AuthContext,
  key: IdempotencyKey,
  request: RequestTexts,
): Idempotency {
  const name = auth.kind === 'admin' ? ADMIN : auth.agentName;
  return {
    id: fieldsMac(keys.row, 'idempotency', [name, key]) as IdempotencyId,
    requestMac: fieldsMac(keys.row, 'request', request),
  };
}

/** The form of every tag. */
export const ENTITY_TAG = '"[A-Za-z0-9+/]{43}="';

/** A strong tag. WHY with sorted fields: a row of the store and a new one may have them in different orders. */
export function entityTag(data: object): string {
  const text = JSON.stringify(data, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return `"${sha256Base64(text)}"`;
}

/**
 * `isLocal`: a client of this machine, through no proxy. `tokenHash`: null without a metrics token.
 * @throws UNAUTHENTICATED, ACCESS_DENIED
 */
export function authorizeScrape(
  authorization: string | undefined,
  isLocal: boolean,
  tokenHash: TokenHash | null,
): void {
  if (tokenHash === null) {
    if (isLocal) return;
    const message =
      'Metrics are served without a token to clients on the same machine only, over a Unix socket or a loopback listener without --public-name and --trusted-proxy. Start the server with --metrics-token-file to serve others.';
    throw new ApiError('ACCESS_DENIED', message);
  }
  const token = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(authorization ?? '')?.[1] ?? '';
  if (timingSafeEqualText(hashToken(token), tokenHash)) return;
  throw new ApiError('UNAUTHENTICATED', 'Send the metrics token in the header Authorization: Bearer <token>.');
}
