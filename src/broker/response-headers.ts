/** Which headers of an upstream's response the caller gets. */
import { rewriteLinks } from './links.ts';
import type { HeaderPairs, Order } from './protocol.ts';
import type { Redactor } from './redaction.ts';

const REMOVED = new Set([
  // The upstream's own connection.
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'transfer-encoding', 'upgrade'],
  // They describe bytes that redaction and decoding may change.
  ...['content-length', 'content-encoding', 'etag', 'digest', 'content-digest', 'repr-digest', 'content-md5'],
  ...['accept-ranges', 'content-range'],
  // They would speak for this service's address.
  ...['alt-svc', 'strict-transport-security', 'public-key-pins', 'clear-site-data'],
]);
/** Ours: an upstream must not claim that its error is the vault's. */
const OUR_PREFIX = 'x-leasehold-';
/** A handshake needs them; the bytes after it are not changed. */
const HANDSHAKE = new Set(['connection', 'upgrade']);

/** `Set-Cookie` stays: it is part of the response, and the caller can send no cookie back. */
export function responseHeaders(
  headers: HeaderPairs,
  order: Order,
  isHandshake: boolean,
  redactor: Redactor,
): HeaderPairs {
  const named = headers
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.split(',').map((part) => part.trim().toLowerCase()));
  const kept = headers.filter(([name]) => {
    const plain = name.toLowerCase();
    if (isHandshake && HANDSHAKE.has(plain)) return true;
    return !REMOVED.has(plain) && !named.includes(plain) && !plain.startsWith(OUR_PREFIX);
  });
  // WHY twice: rewriting may put a part of a value together, and escapes what the redaction has not removed.
  return redactor.headers(rewriteLinks(redactor.headers(kept), order));
}

/** The values of a header, joined. */
export function headerText(headers: HeaderPairs, name: string): string {
  return headers.flatMap(([each, value]) => (each.toLowerCase() === name ? [value] : [])).join(', ');
}
