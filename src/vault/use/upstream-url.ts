/**
 * The grammar of the URLs that a credential may be used for. A URL is never normalised: one that two parsers could read
 * differently is rejected, so that the request that is decided is the request that is sent.
 * SOURCE: docs/decisions.md, "Brokered use"; RFC 3986, section 3.
 */

import type { Brand } from '../../core/names.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { byDefault, isRecord, type PatternGrammar } from '../../engine/field.ts';
import { field } from '../../engine/kinds.ts';

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

const MAX_PURPOSE_LENGTH = 200;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
/** Latin-1, as HTTP/1.1 sends it, without control characters. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,16384}$/;

/** No control characters, because the audit log is printed on terminals, and PostgreSQL cannot store U+0000. */
export const PURPOSE: PatternGrammar<string> = {
  pattern: /^\P{Cc}*$/u,
  minLength: 1,
  maxLength: MAX_PURPOSE_LENGTH,
  description: 'A remark for the audit log.',
  parse(given, field) {
    // A code point outside the Basic Multilingual Plane takes two UTF-16 code units.
    const isTooLong = given.length > 2 * MAX_PURPOSE_LENGTH || [...given].length > MAX_PURPOSE_LENGTH;
    if (given === '' || isTooLong || !given.isWellFormed() || !PURPOSE.pattern.test(given)) {
      throw invalidRequest(field, `must be 1 to ${MAX_PURPOSE_LENGTH} characters without control characters`);
    }
    return given;
  },
};

type Headers = readonly (readonly [name: string, value: string])[];
const HEADERS = {
  kind: 'map',
  name: HEADER_NAME,
  max: null,
  maxTextLength: 16_384,
  textPattern: HEADER_VALUE,
} as const;

/** The headers of a request, as pairs in memory. A problem contains no name or value of a header. */
export const requestHeaders = byDefault(
  {},
  field<Headers, Readonly<Record<string, string>>, Record<string, string>, undefined>(
    { ...HEADERS, maxInteger: null, title: 'RequestHeaders', isScalar: (value) => typeof value === 'string' },
    { description: 'Headers that could carry authority are removed.' },
    {
      read(given, where, problems) {
        if (!isRecord(given)) {
          problems.push(`${where}: must be an object`);
          return undefined;
        }
        const pairs = Object.entries(given);
        const values = pairs.flatMap(([, value]) => (typeof value === 'string' ? [value] : []));
        if (!pairs.every(([name]) => HEADER_NAME.test(name))) problems.push(`${where}: has an invalid name`);
        else if (values.length < pairs.length) problems.push(`${where}: must have strings as values`);
        else if (values.every((value) => HEADER_VALUE.test(value))) return pairs as [string, string][];
        else problems.push(`${where}: must have values of at most 16384 Latin-1 characters without control characters`);
        return undefined;
      },
      write: (headers) => Object.fromEntries(headers),
      restore: Object.entries<string>,
      covers: Object.is,
    },
  ),
);
