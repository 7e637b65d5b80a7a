/**
 * The token of a request to a base URL. SDKs send their key in different places, so each of these may contain it. All
 * must contain the same one, and none is forwarded. SOURCE: docs/api.md, "Base URL".
 */
import type { IncomingMessage } from 'node:http';
import type { HeaderPairs } from '../broker/protocol.ts';
import { ApiError, invalidRequest } from '../engine/errors.ts';
import type { Placement } from '../vault/use/target.ts';
import { type FoundToken, findTokens, isUseToken, wholeTokens } from '../vault/use/token-form.ts';

interface RequestWithoutToken {
  readonly headers: HeaderPairs;
  /** The query with its leading `?`, or an empty text. */
  readonly query: string;
  /** Tokens that would be forwarded, because they are in other places. */
  readonly misplaced: readonly FoundToken[];
}

const KEY_HEADERS: ReadonlySet<string> = new Set(['x-api-key', 'api-key', 'x-goog-api-key']);
const PLACES =
  'Authorization, x-api-key, api-key, x-goog-api-key, or where the credential is placed in a request of its service';

/**
 * The token of the caller. A request with others is rejected once the caller is authenticated. @throws UNAUTHENTICATED
 * without a token, INVALID_REQUEST for different ones in the headers that SDKs use for keys
 */
export function findUseToken(request: IncomingMessage): string {
  const headers = headerPairs(request);
  const [token, ...different] = new Set(headers.flatMap(([name, value]) => namedToken(name, value) ?? []));
  if (different.length > 0) throw invalidRequest('token', 'must be the same wherever the request has one');
  if (token !== undefined) return token;
  const others = [request.url ?? '', ...headers.map(([, value]) => value)].flatMap(wholeTokens);
  const own = others.find((each) => !isUseToken(each)) ?? others[0];
  if (own === undefined) throw new ApiError('UNAUTHENTICATED', `Send a token in ${PLACES}.`);
  return own;
}

/** The error for tokens that would be forwarded and that were not issued, or that open sessions. */
export function misplacedToken(): ApiError {
  return invalidRequest('token', `must be sent only in ${PLACES}`);
}

/** Whether a header has the token whose name does not depend on the credential. */
export function hasNamedToken(request: IncomingMessage): boolean {
  return headerPairs(request).some(([name, value]) => namedToken(name, value) !== null);
}

/**
 * The headers and the query without the caller's token. `placement`: the placement of the credential, null if it is not
 * known.
 */
export function withoutToken(
  request: IncomingMessage,
  token: string,
  query: string,
  placement: Placement | null,
): RequestWithoutToken {
  const placed = placement?.kind === 'header' ? placement.name.toLowerCase() : null;
  // WHY never a cookie: browsers send the cookies of other ports and pages of the host by themselves.
  const own = placed === 'cookie' ? null : placed;
  const headers = headerPairs(request).filter(([name, value]) => {
    return namedToken(name, value) === null && !(name === own && value.includes(token));
  });
  const parameters = query === '' ? [] : query.slice(1).split('&');
  const parameter = placement?.kind === 'query' ? `${placement.name}=${token}` : null;
  const kept = parameters.filter((each) => each !== parameter);
  const [path = ''] = (request.url ?? '').split('?', 1);
  return {
    headers,
    query: kept.length === parameters.length ? query : kept.length === 0 ? '' : `?${kept.join('&')}`,
    misplaced: findTokens({ path, query: kept.join('&'), headers }),
  };
}

/** `name` is in lower case. Null if the header has no token by its name. */
function namedToken(name: string, value: string): string | null {
  if (KEY_HEADERS.has(name)) return value.trim();
  if (name !== 'authorization') return null;
  // SDKs use other schemes too, such as `token`, or none.
  const [, scheme = '', text = ''] = /^(?:([A-Za-z][\w-]*) +)?([A-Za-z0-9\-._~+/]+=*) *$/.exec(value) ?? [];
  if (text === '') return null;
  if (scheme.toLowerCase() !== 'basic') return text;
  const pair = Buffer.from(text, 'base64').toString('utf8');
  return pair.slice(pair.indexOf(':') + 1);
}

/** The headers in order, with repetitions; names are in lower case. */
function headerPairs({ rawHeaders }: IncomingMessage): HeaderPairs {
  return Array.from({ length: rawHeaders.length / 2 }, (_, at) => [
    (rawHeaders[2 * at] ?? '').toLowerCase(),
    rawHeaders[2 * at + 1] ?? '',
  ]);
}
