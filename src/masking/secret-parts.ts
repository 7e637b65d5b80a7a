/**
 * The secret parts of a structured value. A program that reads a JSON document, a URL, a connection string, lines of
 * settings or a PEM bundle prints a password from it, and not the whole value. Names and the table of patterns decide
 * which parts are secret.
 */
import { describesField, isSecretField } from './secret-names.ts';
import { findSecrets } from './secret-patterns.ts';

/**
 * WHY longer than the minimum of a whole value: a user declared the value a secret, but a part is secret by its name
 * alone. Texts of five characters or fewer (admin, redis, 12345) occur in ordinary output.
 */
const MIN_PART_BYTES = 6;
/** Numbers with fewer digits are ports, years or counts. */
const MIN_DIGITS = 8;
/**
 * Values of fields with secret names that occur in ordinary output, and that a default installation uses as its
 * password.
 */
const COMMON = new Set(
  'password passwd secret changeme default example localhost postgres postgresql username administrator required optional enabled disabled undefined bearer string redacted'.split(
    ' ',
  ),
);
/** INVARIANT: the number of masked parts is bounded. Further parts are masked only within the whole value. */
const MAX_PARTS = 256;
const MAX_PARTS_BYTES = 32 * 1024;
/** Limit as a multiple of the value's length, because the same bytes may be read in several ways. */
const MAX_PARTS_FACTOR = 2;
/** Levels of nesting, such as JSON in a JSON string, or its base64. */
const MAX_DEPTH = 6;
/**
 * Total of the characters read, as a multiple of the value's length. A hostile value may be read in many ways at every
 * depth.
 */
const MAX_READ_FACTOR = 4;
const MIN_READ = 64 * 1024;
/** The limit of a line with several pairs. Connection strings and forms are shorter. */
const MAX_PAIRS_LENGTH = 16 * 1024;
const CLOSING: ReadonlyMap<string, string> = new Map([
  ['{', '}'],
  ['[', ']'],
  ['"', '"'],
]);
/** The private members of a JSON web key. SOURCE: RFC 7518, 6.2.2, 6.3.2 and 6.4.1. */
const JWK_SECRETS = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']);

/** The secret parts; empty if the value has no structure, or no secret part. */
export function secretParts(value: string): string[] {
  const maxBytes = Math.min(MAX_PARTS_BYTES, MAX_PARTS_FACTOR * value.length);
  const parts = new Parts(Math.max(MIN_READ, MAX_READ_FACTOR * value.length), maxBytes);
  parts.read(value, 0);
  return [...parts.found];
}

class Parts {
  readonly found = new Set<string>();
  #bytes = 0;
  #budget: number;
  readonly #maxBytes: number;

  constructor(budget: number, maxBytes: number) {
    this.#budget = budget;
    this.#maxBytes = maxBytes;
  }

  read(text: string, depth: number): void {
    this.#budget -= text.length;
    if (this.#budget < 0 || depth > MAX_DEPTH || text.length < MIN_PART_BYTES || this.found.size >= MAX_PARTS) return;
    if (this.#readJson(text, depth)) return;
    for (const secret of findSecrets(text)) this.#add(secret, depth);
    const lines = text.split(/[\r\n]+/);
    for (const line of lines) {
      if (lines.length > 1) this.#readJson(line, depth);
      for (const [url] of line.matchAll(/(?<![A-Za-z0-9+.-])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'`<>]{1,4096}/gi))
        this.#readUrl(url, depth);
      this.#readPairs(line, depth);
    }
    // A variable of one line contains a PEM bundle in this form.
    if (text.includes(String.raw`-----\n`)) this.read(text.replaceAll(/\\r|\\n/g, '\n'), depth + 1);
  }

  #readJson(text: string, depth: number): boolean {
    // WHY both ends: a failed parse costs as much as hundreds of characters.
    const trimmed = text.trim();
    if (trimmed.length < 2 || CLOSING.get(trimmed.charAt(0)) !== trimmed.at(-1)) return false;
    try {
      this.#walk(JSON.parse(trimmed), depth);
      return true;
    } catch {
      return false;
    }
  }

  /** Uses a stack instead of recursion, because a document may be nested deeper than calls can be. */
  #walk(document: unknown, depth: number): void {
    const open: { node: unknown; isSecret: boolean }[] = [{ node: document, isSecret: false }];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { node, isSecret } = next;
      if (typeof node === 'string' || typeof node === 'number') {
        const text = String(node);
        if (isSecret) this.#add(text, depth);
        if (typeof node === 'string') this.read(text, depth + 1);
      } else if (Array.isArray(node)) {
        for (const child of node) open.push({ node: child, isSecret });
      } else if (typeof node === 'object' && node !== null) {
        for (const [name, child] of Object.entries(node)) {
          open.push({ node: child, isSecret: isSecretMember(node, name, isSecret) });
        }
      }
    }
  }

  #readUrl(url: string, depth: number): void {
    const rest = url.slice(url.indexOf('//') + 2);
    const [authority = ''] = /^[^/?#]*/.exec(rest) ?? [];
    // WHY the second: many drivers accept an unescaped slash in a password. A port is not a password.
    const isUnescaped = !authority.includes('@') && !/^[^:]*(?::\d{0,5})?$/.test(authority);
    const userinfo = rest.slice(0, Math.max(0, (isUnescaped ? rest : authority).lastIndexOf('@')));
    if (userinfo.includes(':')) this.#add(userinfo.slice(userinfo.indexOf(':') + 1), depth);
    for (const pair of url.split(/[?&#;]/).slice(1)) this.#addPair(pair, '=', depth);
  }

  /** Reads connection strings, form bodies and lines of settings. Every reading that yields a secret name counts. */
  #readPairs(line: string, depth: number): void {
    this.#addPair(line, '=', depth);
    this.#addPair(line, ':', depth);
    if (line.length > MAX_PAIRS_LENGTH) return;
    for (const separator of [';', ',', '&', /\s+/]) {
      const pieces = line.split(separator);
      if (pieces.length > 1) for (const piece of pieces) this.#addPair(piece, '=', depth);
    }
    for (const [, name = '', double, single] of line.matchAll(
      /(?<![\w.-])([\w.-]{1,64})\s{0,4}[=:]\s{0,4}(?:"([^"]{1,4096})"|'([^']{1,4096})')/g,
    )) {
      const value = double ?? single ?? '';
      if (isSecretPair(name, value)) this.#add(value, depth);
    }
  }

  #addPair(text: string, sign: string, depth: number): void {
    const at = text.indexOf(sign);
    if (at === -1 || at > 80) return;
    const [, name] =
      /^\s*(?:-\s+|export\s+|set\s+|ENV\s+)?["']?([\w .-]{1,64}?)["']?\s*$/.exec(text.slice(0, at)) ?? [];
    const value = text.slice(at + 1).trim();
    if (name === undefined || !isSecretPair(name, value)) return;
    const isQuoted = /^(["'{]).*["'}]$/.test(value);
    const bare = isQuoted ? value.slice(1, -1) : value;
    this.#add(bare, depth);
    const comment = isQuoted ? -1 : bare.search(/\s#/);
    if (comment !== -1) this.#add(bare.slice(0, comment), depth);
    this.read(bare, depth + 1);
  }

  #add(secret: string, depth: number): void {
    for (const text of new Set([secret.trim(), decodePercent(secret.trim())])) {
      const bytes = Buffer.byteLength(text);
      if (bytes < MIN_PART_BYTES || COMMON.has(text.toLowerCase()) || this.found.has(text)) continue;
      if (/^\d+$/.test(text) && text.length < MIN_DIGITS) continue;
      if (this.found.size >= MAX_PARTS || this.#bytes + bytes > this.#maxBytes) continue;
      this.found.add(text);
      this.#bytes += bytes;
      const decoded = decodeBase64(text);
      if (decoded === null || depth >= MAX_DEPTH) continue;
      // Docker and HTTP store a user and a password in this form.
      this.#add(decoded.slice(decoded.indexOf(':') + 1), depth + 1);
      this.read(decoded, depth + 1);
    }
  }
}

function isSecretMember(parent: object, name: string, isParentSecret: boolean): boolean {
  const members = parent as Readonly<Record<string, unknown>>;
  const label = members['name'] ?? members['key'];
  // A list of names with their values, as in Kubernetes and many APIs.
  if (typeof label === 'string' && 'value' in members) return name === 'value' && isSecretField(label);
  if ('kty' in members && JWK_SECRETS.has(name)) return true;
  return isSecretField(name) || (isParentSecret && !describesField(name));
}

/** PWD is a password in connection strings, and a directory in files of variables. */
function isSecretPair(name: string, value: string): boolean {
  if (/^pwd$/i.test(name)) return !/^(?:[/~]|[A-Za-z]:\\)/.test(value);
  return isSecretField(name) || /^sig(?:nature)?$/i.test(name);
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The decoded text; null if the value is not the base64 of a text. */
function decodeBase64(text: string): string | null {
  if (!/^[A-Za-z0-9+/]{8,}={0,2}$/.test(text) || text.length % 4 !== 0) return null;
  const decoded = Buffer.from(text, 'base64').toString('utf8');
  return /^[\x20-\x7e\s\u00a0-\ufffc]+$/.test(decoded) ? decoded : null;
}
