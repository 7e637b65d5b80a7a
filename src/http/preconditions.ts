/**
 * Entity tags, and the headers If-Match and If-None-Match. A tag is a digest of the response body's `data`, so that it
 * is the same on every node and after a restart. SOURCE: RFC 9110, sections 8.8.3 and 13.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Type } from '../api/schema.ts';
import type { Preconditions } from '../core/preconditions.ts';

/** Makes the `data` of a route's response from the target of its operation. */
export type Represent = (target: never) => object;

/** The header's schema for the route table. */
export const IF_MATCH_HEADER = {
  'If-Match': Type.String({
    description: 'The `ETag` of the GET whose result is changed: 412 if the resource is another one now, or is gone.',
  }),
} as const;

/** A strong tag. The order of fields has no meaning, and is not the same for a row of the store and for a new one. */
export function entityTag(data: object): string {
  const text = JSON.stringify(data, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return `"${createHash('sha256').update(text).digest('base64url')}"`;
}

/** Every tag that this server makes. WHY others are not parsed: they match nothing. */
const OWN_TAG = /(?:^|[\s,])(W\/)?("[A-Za-z0-9_-]{43}")(?=$|[\s,])/g;

/** The server's tags in the header. A weak one has the prefix `W/`. */
function tagsIn(header: string): { readonly tag: string; readonly isWeak: boolean }[] {
  return [...header.matchAll(OWN_TAG)].map(([, weak, tag = '']) => ({ tag, isWeak: weak !== undefined }));
}

/**
 * Null if the request has none. A POST selects no representation, so it has none; the route that stores a credential
 * reads `If-None-Match: *` itself. `represent` is null for routes whose resources have no entity tags.
 */
export function preconditionsOf(
  { method, headers }: IncomingMessage,
  represent: Represent | null,
): Preconditions | null {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  if (method === 'POST') return null;
  const isOneOf = (tags: readonly string[]) => (target: object) =>
    // The route's operation has targets of the type that `represent` takes.
    represent !== null && tags.length > 0 && tags.includes(entityTag(represent(target as never)));
  const toCondition = (header: string | undefined, includesWeak: boolean): Preconditions['ifMatch'] => {
    if (header === undefined) return null;
    if (header.trim() === '*') return 'any';
    return isOneOf(tagsIn(header).flatMap(({ tag, isWeak }) => (isWeak && !includesWeak ? [] : [tag])));
  };
  const ifMatch = toCondition(match, false);
  // A GET with the tag of what it would return is answered by `isUnchanged`, once the data is known.
  const ifNoneMatch = method === 'GET' && noneMatch?.trim() !== '*' ? null : toCondition(noneMatch, true);
  return ifMatch === null && ifNoneMatch === null ? null : { ifMatch, ifNoneMatch };
}

/** Whether a failed precondition gives 304 and not 412: for a GET whose If-Match holds. */
export function isNotModified({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && (headers['if-match'] ?? '*').trim() === '*';
}

/** Whether the client of a GET already has the representation with this tag. */
export function isUnchanged({ method, headers }: IncomingMessage, tag: string): boolean {
  return method === 'GET' && tagsIn(headers['if-none-match'] ?? '').some((known) => known.tag === tag);
}
