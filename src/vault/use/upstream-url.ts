/**
 * The grammar of the URLs that a credential may be used for. A URL is never normalised: one that two parsers could read
 * differently is rejected, so that the request that is decided is the request that is sent.
 * SOURCE: docs/decisions.md, "Brokered use"; RFC 3986, section 3.
 */

import type { Brand } from '../../core/names.ts';
import { invalidRequest } from '../../engine/errors.ts';

/** A host in lower case: a DNS name, an IPv4 address, or an IPv6 address in brackets. */
export type Host = Brand<string, 'Host'>;
/** The path of a request as it is sent, with percent-encodings, beginning with `/`. */
export type UrlPath = Brand<string, 'UrlPath'>;

export type Scheme = 'https' | 'http';

export interface UpstreamUrl {
  readonly scheme: Scheme;
  readonly host: Host;
  readonly port: number;
  readonly path: UrlPath;
  /** The query with its leading `?`, or an empty text. */
  readonly query: string;
}

export const MAX_URL_LENGTH = 8192;
const DEFAULT_PORTS: Readonly<Record<Scheme, number>> = { https: 443, http: 80 };

const LABEL = '[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?';
/** The last label has a letter, so that no spelling of an IPv4 address is a DNS name. */
const DNS_NAME = new RegExp(`^(?=.{1,253}$)(?:${LABEL}\\.)*(?!\\d+$|0x)(?=[a-z0-9-]*[a-z])${LABEL}$`);
const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
/** The broker checks that it is an IP address; a zone id is never allowed. */
const BRACKETED = /^\[[0-9a-f:.]{2,45}\]$/;
/** Visible ASCII without the characters that some parsers interpret as another one, and without `#`. */
const PATH_AND_QUERY = /^\/[!$-;=?-[\]_a-z~]*$/;
const URL_PARTS = /^(https?):\/\/([^/?#@\\]{1,260})(\/[^?#]*)?(\?[^#]*)?$/;

/** @throws INVALID_REQUEST naming `field` and the rule */
export function parseHost(text: string, field: string): Host {
  if (DNS_NAME.test(text) || IPV4.test(text) || BRACKETED.test(text)) return text as Host;
  throw invalidRequest(field, 'must have a host name in lower case, an IPv4 address, or an IPv6 address in brackets');
}

/** Scheme, host and port of `https://host[:port]`. @throws INVALID_REQUEST */
export function parseAuthority(scheme: Scheme, authority: string, field: string): { host: string; port: number } {
  const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(authority) ?? [];
  const number = port === undefined ? DEFAULT_PORTS[scheme] : Number(port);
  if (host === '' || number < 1 || number > 65_535 || (port !== undefined && port !== String(number))) {
    throw invalidRequest(field, 'must be scheme://host or scheme://host:port, with a port of 1 to 65535');
  }
  return { host, port: number };
}

/**
 * The path and the query of a request.
 * @throws INVALID_REQUEST for characters outside the grammar, empty segments, and `.` or `..` in any encoding
 */
export function parsePathAndQuery(text: string, field: string): Pick<UpstreamUrl, 'path' | 'query'> {
  if (text.length > MAX_URL_LENGTH) throw invalidRequest(field, `must have at most ${MAX_URL_LENGTH} characters`);
  if (!PATH_AND_QUERY.test(text))
    throw invalidRequest(field, 'must have a path of visible ASCII without " # < > \\ ^ ` { | }');
  const mark = text.indexOf('?');
  const [path, query] = mark === -1 ? [text, ''] : [text.slice(0, mark), text.slice(mark)];
  const rule = segmentViolation(path);
  if (rule !== null) throw invalidRequest(field, rule);
  return { path: path as UrlPath, query };
}

/** Decodes twice, because a server or a proxy in front of it may. */
function segmentViolation(path: string): string | null {
  let decoded = path;
  for (let times = 0; times < 2; times++) {
    if (!/^(?:[^%]|%[0-9A-Fa-f]{2})*$/.test(decoded)) {
      return times === 0 ? 'must contain % only before two hexadecimal digits' : null;
    }
    decoded = decoded.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
    if ([...decoded].some(isUnsafe)) return 'must not contain an encoded control character or backslash';
    const segments = decoded.split('/');
    if (segments.some((segment) => /^\.{1,2}(?:;|$)/.test(segment))) return 'must not contain . or .. as a segment';
  }
  return path.includes('//') ? 'must not contain //' : null;
}

function isUnsafe(character: string): boolean {
  return character < ' ' || character === '\x7f' || character === '\\';
}

/** @throws INVALID_REQUEST naming `field` and the rule; the message never repeats the URL */
export function parseUrl(text: string, field = 'url'): UpstreamUrl {
  const [, scheme, authority = '', path = '/', query = ''] = URL_PARTS.exec(text) ?? [];
  if (scheme !== 'https' && scheme !== 'http') {
    throw invalidRequest(field, 'must be an absolute URL such as https://api.example.com/v1/models, without user or #');
  }
  const { host, port } = parseAuthority(scheme, authority, field);
  return { scheme, host: parseHost(host, field), port, ...parsePathAndQuery(path + query, field) };
}

// The grammars of the purpose and the headers of a brokered request. SOURCE: docs/api.md, "Brokered use"; RFC 9110, 5.1
// and 5.5.

export const MAX_PURPOSE_LENGTH = 200;
/** No control characters, because the audit log is printed on terminals, and PostgreSQL cannot store U+0000. */
export const PURPOSE = /^\P{Cc}*$/u;
export const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
/** Latin-1, as HTTP/1.1 sends it, without control characters. */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,16384}$/;

/** @throws INVALID_REQUEST naming `field` */
export function parsePurpose(text: string, field = 'purpose'): string {
  // A code point outside the Basic Multilingual Plane takes two UTF-16 code units.
  const isTooLong = text.length > 2 * MAX_PURPOSE_LENGTH || [...text].length > MAX_PURPOSE_LENGTH;
  if (text === '' || isTooLong || !text.isWellFormed() || !PURPOSE.test(text)) {
    throw invalidRequest(field, `must be 1 to ${MAX_PURPOSE_LENGTH} characters without control characters`);
  }
  return text;
}

/** The headers as pairs. @throws INVALID_REQUEST, without the invalid name or value */
export function parseHeaders(headers: Readonly<Record<string, string>>): [name: string, value: string][] {
  return Object.entries(headers).map(([name, value]) => {
    if (!HEADER_NAME.test(name)) throw invalidRequest('headers', 'must have names of 1 to 256 token characters');
    if (!HEADER_VALUE.test(value)) {
      throw invalidRequest(
        'headers',
        'must have values of at most 16384 Latin-1 characters without control characters',
      );
    }
    return [name, value];
  });
}
