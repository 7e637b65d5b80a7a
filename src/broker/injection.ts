/**
 * Adds the credential to a request; never replaces a placeholder in it. First it removes every part of the client's
 * request that could carry authority, or that describes the client's own connection. It never changes bodies. Pure.
 */
import type { Placement } from '../vault/use/target.ts';
import type { HeaderPairs, UpstreamRequestSpec } from './protocol.ts';
import { UpstreamError } from './protocol.ts';

export interface RenderedRequest {
  /** The path with the query. */
  readonly path: string;
  readonly headers: HeaderPairs;
}

/** Headers that are removed from every request; compared with `plainName`. */
const REMOVED = new Set([
  // Headers that carry authority.
  ...['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'cookie', 'cookie2'],
  ...['x-auth-token', 'x-access-token', 'private-token', 'job-token', 'deploy-token', 'x-amz-security-token'],
  ...['apikey', 'dd-api-key', 'dd-application-key', 'x-auth-key', 'x-auth-user-service-key'],
  // Headers with the source and the destination of the request.
  ...['host', 'forwarded', 'via', 'x-real-ip', 'x-rewrite-url', 'x-host', 'x-client-ip', 'x-cluster-client-ip'],
  ...['client-ip', 'true-client-ip', 'cf-connecting-ip', 'fastly-client-ip'],
  // Headers that select a method other than the one that was decided.
  ...['x-http-method-override', 'x-http-method', 'x-method-override', 'x-method'],
  // Headers about the client's own connection.
  ...['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'content-length', 'expect', 'http2-settings'],
  ...['upgrade', 'accept-encoding'],
  // WHY: the redaction would not find a value in compressed messages.
  'sec-websocket-extensions',
]);
const REMOVED_PREFIXES = ['x-forwarded-', 'x-original-', 'proxy-'];
const WEBSOCKET_PREFIX = 'sec-websocket-';

/** Words that contain `range` and do not mean one. */
const OTHER_WORDS = /^(?:orange|strange|arrange|rearrange)/;
/** Methods for which `Content-Range` describes the body: a part of an upload. */
const UPLOAD_METHODS = /^(?:PUT|POST|PATCH)$/;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** The form of the client's header values. SOURCE: RFC 9110, 5.5. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/**
 * The form of an injected value. WHY only ASCII: an upstream may repeat a Latin-1 value in bytes that the redaction,
 * which knows UTF-8, does not find.
 */
const INJECTED_VALUE = /^[\x20-\x7e]+$/;
const PATH = /^\/[\x21\x22\x24-\x7e]*$/;

/** @throws UpstreamError for anything that cannot be sent unchanged */
export function buildRequest(spec: UpstreamRequestSpec): RenderedRequest {
  const { placement, value, method } = spec;
  if (!TOKEN.test(method) || /^(?:connect|trace)$/i.test(method)) throw new UpstreamError('protocol');
  if (!PATH.test(spec.path)) throw new UpstreamError('protocol');
  const headers: (readonly [string, string])[] = [['Host', hostOf(spec)]];
  for (const [name, text] of spec.headers) {
    if (!TOKEN.test(name) || !FIELD_VALUE.test(text)) throw new UpstreamError('protocol');
  }
  const replaced = placement.kind === 'header' ? plainName(placement.name) : null;
  const forwarded = forwardedHeaders(spec).filter(([name]) => plainName(name) !== replaced);
  headers.push(...forwarded.map(([name, text]) => [name, restoreTags(plainName(name), text)] as const));
  headers.push(['Accept-Encoding', 'identity'], ...framing(spec));
  const path = placement.kind === 'query' ? setParameter(spec.path, placement.name, value) : spec.path;
  if (placement.kind !== 'query') headers.push(headerOf(placement, value));
  return { path, headers };
}

/**
 * Every text of the value in the request, for the redaction. WHY without the parts that the client knows, such as the
 * user name: long texts are searched in pieces, and a piece that is known except for one character would confirm a
 * guess.
 */
export function renderedForms({ placement, value }: Pick<UpstreamRequestSpec, 'placement' | 'value'>): string[] {
  // WHY the second: pages repeat the URL of a request within another URL, which escapes it again.
  if (placement.kind === 'query') return [value, encodeURIComponent(value.toWellFormed())];
  if (placement.kind !== 'basic') return [value];
  const encoded = headerOf(placement, value)[1].slice('Basic '.length);
  const password = placement.username === null ? value.slice(value.indexOf(':') + 1) : value;
  const known = placement.username === null ? value.slice(0, -password.length) : `${placement.username}:`;
  const ownDigits = encoded.slice(Math.floor((8 * Buffer.byteLength(known)) / 6));
  return [...new Set([value, ownDigits, password])];
}

/**
 * The query without the parameters of that name. Servers differ in how they read names, and each of their readings
 * counts.
 */
export function removeParameter(query: string, name: string): string {
  const own = readName(name);
  return query
    .split('&')
    .flatMap((part) => {
      // Some servers also split at semicolons.
      const kept = part.split(';').filter((each) => readName(decode(each.split('=', 1)[0] ?? '')) !== own);
      return kept.length === 0 ? [] : [kept.join(';')];
    })
    .join('&');
}

function setParameter(path: string, name: string, value: string): string {
  const mark = path.indexOf('?');
  const rest = mark === -1 ? '' : removeParameter(path.slice(mark + 1), name);
  const own = `${encodeURIComponent(name)}=${encodeURIComponent(value.toWellFormed())}`;
  return `${mark === -1 ? path : path.slice(0, mark)}?${rest === '' ? '' : `${rest}&`}${own}`;
}

/** Decodes percent-encoding in either case and `+`; other text stays. Bytes are read as Latin-1. */
function decode(text: string): string {
  const bytes = text
    .replaceAll('+', ' ')
    .replaceAll(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** WHY so lenient: PHP ends a name at `[` and NUL, and reads `.` and spaces as `_`. Other servers ignore case. */
function readName(name: string): string {
  return (name.trim().split(/[[\0]/, 1)[0] ?? '').replaceAll(/[. ]/g, '_').toLowerCase();
}

function headerOf(placement: Exclude<Placement, { kind: 'query' }>, value: string): readonly [string, string] {
  const [name, text] = renderHeader(placement, value);
  if (!TOKEN.test(name)) throw new UpstreamError('protocol');
  if (!INJECTED_VALUE.test(text)) throw new UpstreamError('value');
  return [name, text];
}

function renderHeader(placement: Exclude<Placement, { kind: 'query' }>, value: string): readonly [string, string] {
  if (placement.kind === 'bearer') return ['Authorization', `Bearer ${value}`];
  if (placement.kind === 'header') return [placement.name, placement.template.replaceAll('{value}', () => value)];
  const pair = placement.username === null ? value : `${placement.username}:${value}`;
  // WHY an error: with a colon in the username, another user would log in.
  if (placement.username?.includes(':') === true) throw new UpstreamError('protocol');
  if (/[\0\r\n]/.test(pair)) throw new UpstreamError('value');
  return ['Authorization', `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`];
}

/** WHY underscores: CGI, WSGI and others read `x_api_key` as `x-api-key`. */
const plainName = (name: string): string => name.toLowerCase().replaceAll('_', '-');

/**
 * The client's headers that are sent upstream, without the one that the placement replaces. Approvals show and bind the
 * same headers. `Connection` may name others to remove. SOURCE: RFC 9110, 7.6.1.
 */
export function forwardedHeaders({
  headers,
  isUpgrade,
  method,
}: Pick<UpstreamRequestSpec, 'headers' | 'isUpgrade' | 'method'>): HeaderPairs {
  const named = new Set(
    headers
      .filter(([name]) => plainName(name) === 'connection')
      .flatMap(([, value]) => value.split(',').map((part) => plainName(part.trim()))),
  );
  const isRemoved = (name: string): boolean =>
    REMOVED.has(name) ||
    named.has(name) ||
    (namesRange(name) && !(name === 'content-range' && UPLOAD_METHODS.test(method))) ||
    REMOVED_PREFIXES.some((prefix) => name.startsWith(prefix)) ||
    (!isUpgrade && name.startsWith(WEBSOCKET_PREFIX));
  return headers.filter(([name]) => !isRemoved(plainName(name)));
}

/**
 * Whether a header asks for a part of a representation, under any name that a service may give it, such as
 * `X-Ms-Range`. WHY: half of a value in each of two responses would pass the redaction of both. `name` is plain.
 */
function namesRange(name: string): boolean {
  return name.split(/[^a-z]+/).some((word) => word.includes('range') && !OTHER_WORDS.test(word));
}

function framing({ bodyLength, isUpgrade, method }: UpstreamRequestSpec): HeaderPairs {
  if (isUpgrade) {
    return [
      ['Connection', 'Upgrade'],
      ['Upgrade', 'websocket'],
    ];
  }
  if (bodyLength === null) return [['Transfer-Encoding', 'chunked']];
  const isLengthSent = bodyLength > 0 || /^(?:POST|PUT|PATCH)$/.test(method);
  return isLengthSent ? [['Content-Length', String(bodyLength)]] : [];
}

/** The value of `Host`: with the port unless it is the scheme's own. */
function hostOf({ scheme, host, port }: UpstreamRequestSpec): string {
  return port === (scheme === 'https' ? 443 : 80) ? host : `${host}:${port}`;
}

// Entity tags of representations whose bytes the redaction may change. They become weak, and a tag that the client
// sends back becomes the upstream's own tag again. WHY not both forms in one condition: many servers compare the text
// of a single tag. SOURCE: RFC 9110, 8.8.3.

/** Marks a tag that was weak before, so that the two kinds can be told apart without storing them. */
const WEAK_MARK = '--weak';
const CONDITIONS: ReadonlySet<string> = new Set(['if-match', 'if-none-match', 'if']);

/** The tag in weak form. A text that is no entity tag is not changed. */
export function weaken(tag: string): string {
  return tag.replace(/^(W\/)?"([^"]*)"$/, (_, weak: string | undefined, text: string) =>
    weak === undefined ? `W/"${text}"` : `W/"${text}${WEAK_MARK}"`,
  );
}

/** The value of a request's header, with the tags that the upstream sent. `name` is in lower case. */
function restoreTags(name: string, value: string): string {
  if (!CONDITIONS.has(name)) return value;
  return value.replaceAll(/W\/"([^"]*)"/g, (_, text: string) =>
    text.endsWith(WEAK_MARK) ? `W/"${text.slice(0, -WEAK_MARK.length)}"` : `"${text}"`,
  );
}
