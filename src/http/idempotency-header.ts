/** Reads the header Idempotency-Key and fingerprints the request. SOURCE: docs/decisions.md, "Idempotency". */
import type { IncomingMessage } from 'node:http';
import { Type } from 'typebox';
import { ApiError } from '../core/errors.ts';
import { IDEMPOTENCY_KEY, type IdempotencyKey, parseIdempotencyKey } from '../core/idempotency.ts';
import type { RequestTexts } from '../vault/idempotency.ts';
import { countHeader } from './guard.ts';

/** For the table of routes. */
export const IDEMPOTENCY_HEADER = {
  'Idempotency-Key': Type.String({
    pattern: IDEMPOTENCY_KEY.source,
    minLength: 1,
    maxLength: 255,
    description:
      'Makes a retry safe: for 24 hours the same request with the same key is answered as before, and changes nothing.',
  }),
} as const;

/** Null where there is none. @throws INVALID_REQUEST where it is given twice, or is not of its grammar */
export function readIdempotencyKey(request: IncomingMessage): IdempotencyKey | null {
  const count = countHeader(request, 'idempotency-key');
  if (count === 0) return null;
  if (count > 1) throw new ApiError('INVALID_REQUEST', 'Idempotency-Key: must be given once');
  // Node joins what is given more than once, and gives a text otherwise.
  return parseIdempotencyKey(String(request.headers['idempotency-key']));
}

interface Asked {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly ifNoneMatch: string | undefined;
}

/** All that can make a request another one; by its row's address, so that an alias is the same. */
export function requestFingerprint(
  { method, path }: { readonly method: string; readonly path: string },
  { params, query, body, ifNoneMatch }: Asked,
): RequestTexts {
  return [method, path, fieldsText(params), fieldsText(query), fieldsText(body), ifNoneMatch ?? ''];
}

/** The schemas leave one level of fields, whose order means nothing. */
function fieldsText(fields: unknown): string {
  return JSON.stringify(Object.entries(fields ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
}
