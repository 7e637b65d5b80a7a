/**
 * Decides which headers of an upstream's response the caller gets, and which responses it does not get. Headers that
 * describe the representation are kept as far as they stay true. A response to HEAD keeps its length and digests,
 * because it has no bytes that could change. Entity tags of GET and HEAD are always weak, because the head is sent
 * before it is known whether the body is changed.
 */
import { weaken } from './entity-tags.ts';
import { rewriteLinks } from './links.ts';
import type { HeaderPairs, Order } from './protocol.ts';
import type { Redactor } from './redaction.ts';
import { UpstreamError } from './upstream-error.ts';

const REMOVED = new Set([
  // The upstream's own connection.
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'transfer-encoding', 'upgrade'],
  // Trailers are sent without it. Node rejects it in a response that has none, such as one to HEAD.
  'trailer',
  // Ranges are not requested from an upstream.
  'accept-ranges',
]);
/** They describe bytes that redaction and decoding may change. */
const OF_BYTES = new Set([
  'content-length',
  'content-encoding',
  'digest',
  'content-digest',
  'repr-digest',
  'content-md5',
]);
/** The server's own headers: an upstream must not claim that its error is the vault's. */
const OUR_PREFIX = 'x-leasehold-';
/** A handshake needs them. */
const HANDSHAKE = new Set(['connection', 'upgrade']);

/** A page of a list, as PostgREST counts it: whole items, without a unit. */
const ITEM_RANGE = /^(?:\d+-\d+|\*)\/(?:\d+|\*)$/;

/**
 * INVARIANT: no request asks for a part, so that a value cannot be read in two halves, neither of which is redacted.
 * @throws UpstreamError for a part of a representation, before any byte of it is released
 */
export function rejectPartial(status: number, headers: HeaderPairs): void {
  const range = headerText(headers, 'content-range');
  const isOfItems = ITEM_RANGE.test(range);
  const isOfBytes = range !== '' && !isOfItems;
  // WHY anywhere: older servers write `multipart/x-byteranges`.
  const isMultipart = /byteranges/i.test(headerText(headers, 'content-type'));
  if (isOfBytes || isMultipart || (status === 206 && !isOfItems)) throw new UpstreamError('partial');
}

/** The headers or the trailers that the caller gets. */
export async function responseHeaders(
  headers: HeaderPairs,
  order: Order,
  isHandshake: boolean,
  redactor: Redactor,
): Promise<HeaderPairs> {
  const connection = headerText(headers, 'connection').toLowerCase();
  const named = new Set(connection.split(',').map((part) => part.trim()));
  const isHead = order.method === 'HEAD';
  const kept = headers.filter(([name]) => {
    const plain = name.toLowerCase();
    if (isHandshake && HANDSHAKE.has(plain)) return true;
    if (OF_BYTES.has(plain)) return isHead;
    return !REMOVED.has(plain) && !named.has(plain) && !plain.startsWith(OUR_PREFIX);
  });
  // The tag of a response to PUT or POST names what was stored, of which nothing is changed.
  const isRepresentation = isHead || order.method === 'GET';
  const tagged = isRepresentation ? kept.map(([name, value]) => [name, weakenTag(name, value)] as const) : kept;
  const redacted = await redactor.headers(tagged);
  const rewritten = rewriteLinks(redacted, order);
  // WHY again: rewriting may put a part of a value together, and escapes what the redaction has not removed.
  return rewritten === redacted ? redacted : redactor.headers(rewritten);
}

function weakenTag(name: string, value: string): string {
  return name.toLowerCase() === 'etag' ? weaken(value) : value;
}

/** The values of a header, joined. */
export function headerText(headers: HeaderPairs, name: string): string {
  const values: string[] = [];
  for (const [each, value] of headers)
    if (each.length === name.length && each.toLowerCase() === name) values.push(value);
  return values.join(', ');
}
