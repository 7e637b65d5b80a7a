/**
 * The token of a request to a base URL. SDKs send their key in different places, so that each of them may have it; all
 * of them must have the same one, and none is forwarded. SOURCE: docs/api.md, "Base URL".
 */
import type { IncomingMessage } from 'node:http';
import { TOKEN_PREFIXES } from '../core/catalogue/sdk-environment.ts';
import { ApiError, invalidRequest } from '../core/errors.ts';
import type { Placement } from '../core/target.ts';

type HeaderPair = readonly [name: string, value: string];

/** A request without its token. */
export interface RequestWithoutToken {
  readonly headers: readonly HeaderPair[];
  /** With the leading `?`; empty without a query. */
  readonly query: string;
}

const KEY_HEADERS: ReadonlySet<string> = new Set(['x-api-key', 'api-key', 'x-goog-api-key']);
const PREFIXES = TOKEN_PREFIXES.map((prefix) => RegExp.escape(prefix)).join('|');
/** The token of a session or a use lease. */
const TOKEN = new RegExp(`(?:${PREFIXES})?lh[us]_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])`, 'g');
const PLACES =
  'Authorization, x-api-key, api-key, x-goog-api-key, or where the credential is placed in a request of its service';

/** The only token of the request. @throws UNAUTHENTICATED without one, INVALID_REQUEST for different ones */
export function findUseToken(request: IncomingMessage): string {
  const named = headerPairs(request).flatMap(([name, value]) => namedToken(name, value) ?? []);
  const others = [request.url ?? '', ...headerPairs(request).map(([, value]) => value)];
  const tokens = new Set([...named, ...others.flatMap((text) => text.match(TOKEN) ?? [])]);
  const [token, ...different] = tokens;
  if (token === undefined) throw new ApiError('UNAUTHENTICATED', `Send a token in ${PLACES}.`);
  if (different.length > 0) throw invalidRequest('token', 'must be the same wherever the request has one');
  return token;
}

/** Whether a header has the token whose name does not depend on the credential. */
export function hasNamedToken(request: IncomingMessage): boolean {
  return headerPairs(request).some(([name, value]) => namedToken(name, value) !== null);
}

/**
 * The headers and the query as they may be forwarded. `placement`: of the credential, null if it is not known.
 * @throws INVALID_REQUEST if the token is in another place, which would be forwarded
 */
export function withoutToken(
  request: IncomingMessage,
  token: string,
  query: string,
  placement: Placement | null,
): RequestWithoutToken {
  const own = placement?.kind === 'header' ? placement.name.toLowerCase() : null;
  const headers = headerPairs(request).filter(([name, value]) => {
    return namedToken(name, value) === null && !(name === own && value.includes(token));
  });
  const parameters = query === '' ? [] : query.slice(1).split('&');
  const parameter = placement?.kind === 'query' ? `${placement.name}=${token}` : null;
  const kept = parameters.filter((each) => each !== parameter);
  const path = (request.url ?? '').split('?', 1);
  const forwarded = [...path, ...kept, ...headers.map(([, value]) => value)];
  if (forwarded.some((text) => text.includes(token))) throw invalidRequest('token', `must be sent only in ${PLACES}`);
  return { headers, query: kept.length === parameters.length ? query : kept.length === 0 ? '' : `?${kept.join('&')}` };
}

/** `name` is in lower case. Null if the header has no token by its name. */
function namedToken(name: string, value: string): string | null {
  if (KEY_HEADERS.has(name)) return value.trim();
  if (name !== 'authorization') return null;
  const [, scheme = '', text = ''] = /^(bearer|basic) +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(value) ?? [];
  if (scheme === '') return null;
  if (scheme.toLowerCase() === 'bearer') return text;
  const pair = Buffer.from(text, 'base64').toString('utf8');
  return pair.slice(pair.indexOf(':') + 1);
}

/** In order, with repetitions; names in lower case. */
function headerPairs({ rawHeaders }: IncomingMessage): HeaderPair[] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, at) => [
    (rawHeaders[2 * at] ?? '').toLowerCase(),
    rawHeaders[2 * at + 1] ?? '',
  ]);
}
