/** The headers If-Match and If-None-Match. SOURCE: RFC 9110, section 13; docs/decisions.md, "Conditional requests". */
import type { IncomingMessage } from 'node:http';
import { Type } from 'typebox';
import type { Preconditions } from '../core/preconditions.ts';
import { ENTITY_TAG, entityTag } from '../vault/entity-tag.ts';

/** Makes the `data` of a route's response from the target of its operation. */
export type Represent = (target: never) => object;

/** The limit of all headers together. */
const MAX_HEADER_LENGTH = 16 * 1024;

/** The header's schema for the route table. */
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

/** Whether a failed precondition gives 304 and not 412: for a GET without the tag of an If-Match. */
export function isNotModified({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && (headers['if-match'] ?? '*').trim() === '*';
}

/** Whether the client of a GET already has the representation with this tag. */
export function isUnchanged({ method, headers }: IncomingMessage, tag: string): boolean {
  return method === 'GET' && tagsIn(headers['if-none-match'] ?? '').some((known) => known.tag === tag);
}
