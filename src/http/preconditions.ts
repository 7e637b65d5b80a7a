/** The headers If-Match and If-None-Match. SOURCE: RFC 9110, section 13. */
import type { IncomingMessage } from 'node:http';
import type { Preconditions } from '../core/operation.ts';

/**
 * Null where the request has none. A POST creates or does something, and selects no representation: it has none, but that storing
 * a credential knows `If-None-Match: *`. Without entity tags a list of them in If-None-Match always holds.
 */
export function preconditionsOf({ method, headers }: IncomingMessage): Preconditions | null {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  const ifMatch = match === undefined ? null : match.trim() === '*' ? 'any' : 'tags';
  const ifNoneMatch = noneMatch?.trim() === '*' ? 'any' : null;
  return method === 'POST' || (ifMatch === null && ifNoneMatch === null) ? null : { ifMatch, ifNoneMatch };
}

/** Whether the answer to a failed precondition is 304: to a GET whose If-Match holds. */
export function isNotModified(request: IncomingMessage): boolean {
  return request.method === 'GET' && preconditionsOf(request)?.ifMatch !== 'tags';
}
