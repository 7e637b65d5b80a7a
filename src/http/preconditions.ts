/** The headers If-Match and If-None-Match. SOURCE: RFC 9110, section 13. */
import type { IncomingMessage } from 'node:http';
import type { Preconditions } from '../core/preconditions.ts';

/**
 * Null if the request has none. A POST selects no representation, so it has none; the route that stores a credential
 * reads `If-None-Match: *` itself. Resources have no entity tags, so a list of tags in If-None-Match always holds.
 */
export function preconditionsOf({ method, headers }: IncomingMessage): Preconditions | null {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  const ifMatch = match === undefined ? null : match.trim() === '*' ? 'any' : 'tags';
  const ifNoneMatch = noneMatch?.trim() === '*' ? 'any' : null;
  return method === 'POST' || (ifMatch === null && ifNoneMatch === null) ? null : { ifMatch, ifNoneMatch };
}

/** Whether a failed precondition gives 304 and not 412: for a GET whose If-Match holds. */
export function isNotModified(request: IncomingMessage): boolean {
  return request.method === 'GET' && preconditionsOf(request)?.ifMatch !== 'tags';
}
