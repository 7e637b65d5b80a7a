/** Reads the header Idempotency-Key and fingerprints the request. SOURCE: docs/decisions.md, "Idempotency". */
import type { IncomingMessage } from 'node:http';
import { Type } from 'typebox';
import { ApiError } from '../core/errors.ts';
import { IDEMPOTENCY_KEY, type IdempotencyKey, parseIdempotencyKey } from '../core/idempotency.ts';
import type { RequestTexts } from '../vault/header-digests.ts';
import { countHeader } from './guard.ts';

/** The header's schema for the route table. */
export const IDEMPOTENCY_HEADER = {
  'Idempotency-Key': Type.String({
    pattern: IDEMPOTENCY_KEY.source,
    minLength: 1,
    maxLength: 255,
    description:
      'Makes a retry safe: for 24 hours the same request with the same key returns the same response and changes nothing.',
  }),
} as const;

/** Null if the header is missing. @throws INVALID_REQUEST if it is repeated or malformed */
export function readIdempotencyKey(request: IncomingMessage): IdempotencyKey | null {
  const count = countHeader(request, 'idempotency-key');
  if (count === 0) return null;
  if (count > 1) throw new ApiError('INVALID_REQUEST', 'Idempotency-Key: must be given once');
  // A header given once is a string.
  return parseIdempotencyKey(String(request.headers['idempotency-key']));
}

interface RequestParts {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly ifNoneMatch: string | undefined;
}

/** Everything in which two requests can differ. The path is the row's, so that an alias gives the same fingerprint. */
export function requestFingerprint(
  { method, path }: { readonly method: string; readonly path: string },
  { params, query, body, ifNoneMatch }: RequestParts,
): RequestTexts {
  return [method, path, fieldsText(params), fieldsText(query), fieldsText(body), ifNoneMatch ?? ''];
}

/** The schemas allow one level of fields, whose order has no meaning. */
function fieldsText(fields: unknown): string {
  return JSON.stringify(Object.entries(fields ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
}
