/**
 * Decides which headers of an upstream's response the client receives, which responses it does not receive, and how a
 * body is decoded. Headers about the representation are kept if decoding and redaction cannot falsify them. A response
 * to HEAD keeps its length and digests, because it contains no bytes that could change. Entity tags of GET and HEAD are
 * always weak, because the head is sent before it is known whether the body is changed.
 */
import { pipeline, Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib';
import { removeParameter, weaken } from './injection.ts';
import { type HeaderPairs, UpstreamError, type UpstreamRequestSpec } from './protocol.ts';
import type { Redactor } from './redaction.ts';

const REMOVED = new Set([
  // Headers about the upstream's own connection.
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'transfer-encoding', 'upgrade'],
  // Trailers are sent without this header. Node rejects it in a response without trailers, such as one to HEAD.
  'trailer',
  // No ranges are requested from an upstream.
  'accept-ranges',
]);
/** Headers that describe bytes which redaction and decoding may change. */
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
/** Headers that a handshake needs. */
const HANDSHAKE = new Set(['connection', 'upgrade']);

/** The range of one page of a list, as PostgREST counts it: whole items, without a unit. */
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

export async function responseHeaders(
  headers: HeaderPairs,
  spec: UpstreamRequestSpec,
  isHandshake: boolean,
  redactor: Redactor,
): Promise<HeaderPairs> {
  const connection = headerText(headers, 'connection').toLowerCase();
  const named = new Set(connection.split(',').map((part) => part.trim()));
  const isHead = spec.method === 'HEAD';
  const kept = headers.filter(([name]) => {
    const plain = name.toLowerCase();
    if (isHandshake && HANDSHAKE.has(plain)) return true;
    if (OF_BYTES.has(plain)) return isHead;
    return !REMOVED.has(plain) && !named.has(plain) && !plain.startsWith(OUR_PREFIX);
  });
  // The tag of a response to PUT or POST names the stored representation, which is not changed.
  const isRepresentation = isHead || spec.method === 'GET';
  const tagged = isRepresentation ? kept.map(([name, value]) => [name, weakenTag(name, value)] as const) : kept;
  const redacted = await redactor.headers(tagged);
  const rewritten = rewriteLinks(redacted, spec);
  // WHY again: rewriting may join parts of a value, and escapes text that the redaction has not removed.
  return rewritten === redacted ? redacted : redactor.headers(rewritten);
}

function weakenTag(name: string, value: string): string {
  return name.toLowerCase() === 'etag' ? weaken(value) : value;
}

export function headerText(headers: HeaderPairs, name: string): string {
  const values: string[] = [];
  for (const [each, value] of headers)
    if (each.length === name.length && each.toLowerCase() === name) values.push(value);
  return values.join(', ');
}

// Rewrites links in a response that point to the target's own origin, so that the client's next request also uses the
// broker.

const LINKS = new Set(['link', 'location', 'content-location']);
const isLink = (name: string): boolean => LINKS.has(name.toLowerCase());

/** Limits for all links of a response. WHY: each link may grow by the length of the prefix. */
const MAX_LINKS = 64;
const MAX_LINK_BYTES = 16 * 1024;

/**
 * Rewrites the links in headers. Redirects to other origins stay as they are: the client may follow them, without the
 * credential. Headers with too many or too long links are removed. Returns the given headers if none of them contains
 * links.
 */
export function rewriteLinks(headers: HeaderPairs, spec: UpstreamRequestSpec): HeaderPairs {
  const { linkPrefix } = spec;
  if (linkPrefix === null || !headers.some(([name]) => isLink(name))) return headers;
  let [links, bytes] = [0, 0];
  const rewrite = (link: string): string => {
    links++;
    bytes += link.length;
    return links > MAX_LINKS || bytes > MAX_LINK_BYTES ? '' : rewriteLink(link, spec, linkPrefix);
  };
  return headers.flatMap(([name, value]) => {
    if (!isLink(name)) return [[name, value] as const];
    const rewritten =
      name.toLowerCase() === 'link'
        ? value.replaceAll(/<([^<>]*)>/g, (_, link: string) => `<${rewrite(link)}>`)
        : rewrite(value);
    bytes += rewritten.length;
    return links > MAX_LINKS || bytes > MAX_LINK_BYTES ? [] : [[name, rewritten] as const];
  });
}

function rewriteLink(link: string, spec: UpstreamRequestSpec, prefix: string): string {
  const base = `${spec.scheme}://${spec.host}:${spec.port}`;
  const url = URL.parse(link, `${base}${spec.path}`);
  if (url === null || url.origin !== new URL(base).origin) return link;
  const query = url.search.slice(1);
  // The parameter with the value would come back as `[secret]`. It is set again in the next request anyway.
  const kept = spec.placement.kind === 'query' ? removeParameter(query, spec.placement.name) : query;
  return `${prefix}${url.pathname}${kept === '' ? '' : `?${kept}`}${url.hash}`;
}

// Decodes a response that the upstream compressed although identity was requested. Memory is bounded: a decoder
// receives more input only once its output has been read, however small the input of a large output is.

/** More than one coding is unusual, and each costs memory. */
const MAX_CODINGS = 2;
const gunzip = (source: Readable): Readable => connect(source, createGunzip());
const DECODERS: ReadonlyMap<string, (source: Readable) => Readable> = new Map([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', (source) => Readable.from(inflate(source), { objectMode: false })],
  ['br', (source) => connect(source, createBrotliDecompress())],
  ['zstd', (source) => connect(source, createZstdDecompress())],
]);

/**
 * The decoded body. An error of the decoder destroys the body, and an error of the body destroys the decoder. @throws
 * UpstreamError for an unknown coding
 */
export function decodeBody(body: Readable, contentEncoding: string): Readable {
  const codings = contentEncoding.split(',').map((coding) => coding.trim().toLowerCase());
  const applied = codings.filter((coding) => coding !== '' && coding !== 'identity').reverse();
  if (applied.length > MAX_CODINGS) throw new UpstreamError('coding');
  const decoders = applied.map((coding) => {
    const decoder = DECODERS.get(coding);
    if (decoder === undefined) throw new UpstreamError('coding');
    return decoder;
  });
  return decoders.reduce<Readable>((source, decode) => decode(source), body);
}

function connect(source: Readable, decoder: Transform): Readable {
  // WHY: it decodes ahead of its reader, and an error without a listener ends the process.
  decoder.on('error', () => undefined);
  return pipeline(source, decoder, () => undefined);
}

/**
 * WHY two formats: by RFC 9110 deflate is the zlib format, but some servers send raw deflate data. The first byte
 * distinguishes them.
 */
async function* inflate(source: Readable): AsyncGenerator<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const isZlib = ((first.value[0] ?? 0) & 0x0f) === 8;
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield first.value;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  }
  try {
    yield* connect(Readable.from(whole(), { objectMode: false }), isZlib ? createInflate() : createInflateRaw());
  } finally {
    source.destroy();
  }
}
