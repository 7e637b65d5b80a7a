/**
 * The headers If-Match and If-None-Match of requests about a resource with an entity tag; other routes ignore them.
 * SOURCE: RFC 9110, section 13; docs/decisions.md, "Conditional requests".
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Type } from 'typebox';
import { IDEMPOTENCY_KEY, type IdempotencyKey, parseIdempotencyKey } from '../core/idempotency.ts';
import type { Context } from '../core/operation.ts';
import { ApiError, invalidRequest } from '../engine/errors.ts';
import { ENTITY_TAG, entityTag, type RequestTexts } from '../vault/header-digests.ts';
import { countHeader } from './guard.ts';
import type { GivenRequest } from './route.ts';

export type Represent = (target: never) => object;

const MAX_HEADER_LENGTH = 16 * 1024;

export const IF_MATCH_HEADER = {
  'If-Match': Type.String({
    description: 'The `ETag` of the GET whose result is changed: 412 if the resource is another one now, or is gone.',
    maxLength: MAX_HEADER_LENGTH,
  }),
} as const;

/** WHY only the server's own tags: others match nothing. */
const OWN_TAG = new RegExp(String.raw`(?:^|[\s,])(W/)?(${ENTITY_TAG})(?=$|[\s,])`, 'g');

/** The server's tags in the header. A weak one has the prefix `W/`. */
function tagsIn(header: string): { readonly tag: string; readonly isWeak: boolean }[] {
  return [...header.matchAll(OWN_TAG)].map(([, weak, tag = '']) => ({ tag, isWeak: weak !== undefined }));
}

const ENTITY_TAGS = /^(?:W\/)?"[^"]*"(?:\s*,\s*(?:W\/)?"[^"]*")*$/;

/**
 * Returns null if the request has no precondition that the decision checks. WHY a malformed If-None-Match is an error:
 * its sender wants to replace nothing, and without the header the request would replace the resource. @throws
 * INVALID_REQUEST
 */
export function preconditionOf(
  { method, headers }: IncomingMessage,
  represent: Represent | null,
): NonNullable<Context['precondition']> | null {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  if (represent === null) return null;
  const includes = (header: string, includesWeak: boolean, target: object): boolean => {
    if (header.trim() === '*') return true;
    // The route's operation has targets of the type that `represent` takes.
    const present = entityTag(represent(target as never));
    return tagsIn(header).some(({ tag, isWeak }) => tag === present && (includesWeak || !isWeak));
  };
  // For a GET, `isUnchanged` compares the tag once the data is known.
  const excluded = method === 'GET' ? undefined : noneMatch;
  if (match === undefined && excluded === undefined) return null;
  if (excluded !== undefined && excluded.trim() !== '*' && !ENTITY_TAGS.test(excluded.trim()))
    throw invalidRequest('If-None-Match', 'must be * or a list of entity tags');
  return (target) =>
    target === null
      ? match === undefined
      : (match === undefined || includes(match, false, target)) &&
        (excluded === undefined || !includes(excluded, true, target));
}

export function isUnchanged({ 'if-none-match': header = '' }: IncomingHttpHeaders, tag: string): boolean {
  return header.trim() === '*' || tagsIn(header).some((known) => known.tag === tag);
}

// Reads the header Idempotency-Key and fingerprints the request. SOURCE: docs/decisions.md, "Idempotency".

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

/** Everything in which two requests can differ. The path is the row's, so that an alias gives the same fingerprint. */
export function requestFingerprint(
  { method, path }: { readonly method: string; readonly path: string },
  { params, query, body }: GivenRequest,
  ifNoneMatch: string | undefined,
): RequestTexts {
  return [method, path, fieldsText(params), fieldsText(query), fieldsText(body), ifNoneMatch ?? ''];
}

/** The order of the fields has no meaning; within a field, such as `limits`, another order is another request. */
function fieldsText(fields: unknown): string {
  return JSON.stringify(Object.entries(fields ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
}
