/**
 * References to credentials: `leasehold://prod/db/password`, with a version `leasehold://prod/db/password?version=3`.
 * In a .env file `leasehold://openai/key?use` lets the program use the credential without its value. Inside a value a
 * reference needs braces: `postgres://app:{{leasehold://prod/db/password | url}}@db/app`. A path may contain `@`, `:`
 * and `/`, so its end in a URL would be ambiguous without them.
 */
import { type CredentialPath, pathViolation } from '../core/path.ts';
import { UsageError } from '../platform/errors.ts';
import { Secret } from '../vault/credentials/credential.ts';
import type { EnvBinding } from './leases.ts';

const SCHEME = 'leasehold://';
/** Matches misspelt references too. */
const LOOKS_LIKE_ONE = /^\s*leasehold:/i;
const MAX_VERSION = Number.MAX_SAFE_INTEGER;

export interface Reference {
  readonly path: CredentialPath;
  /** Null for the newest version. */
  readonly version: number | null;
}

/** Whether a text must be parsed as a reference. */
export function isReference(text: string): boolean {
  return LOOKS_LIKE_ONE.test(text);
}

/** `where` is the beginning of the error message. @throws UsageError */
export function parseReference(text: string, where: string): Reference {
  if (!text.startsWith(SCHEME)) throw new UsageError(`${where}: a reference is written ${SCHEME}path, in lower case`);
  return parseSource(text, where);
}

/** Parses a reference with or without `leasehold://`. @throws UsageError */
export function parseSource(text: string, where: string): Reference {
  const [path = '', query, ...others] = (text.startsWith(SCHEME) ? text.slice(SCHEME.length) : text).split('?');
  const rule = pathViolation(path);
  if (rule !== null) throw new UsageError(`${where}: the path of a credential ${rule}`);
  if (query === undefined) return { path: path as CredentialPath, version: null };
  const digits = /^version=([1-9]\d*)$/.exec(query)?.[1];
  const version = Number(digits);
  if (digits === undefined || others.length > 0 || version > MAX_VERSION)
    throw new UsageError(`${where}: behind the path only ?version=N may stand, N from 1, or ?use in a .env file`);
  return { path: path as CredentialPath, version };
}

const USE = '?use';

/** The path of a reference with `?use`; null for a reference to a value. @throws UsageError */
export function parseUseReference(text: string, where: string): CredentialPath | null {
  return text.endsWith(USE) ? parseReference(text.slice(0, -USE.length), where).path : null;
}

/** Writes the reference to the newest version, for a .env file. */
export function writeReference(path: string, isUsed: boolean): string {
  return `${SCHEME}${path}${isUsed ? USE : ''}`;
}

/** Bounded, so that the cost of a long text is linear in its length. */
const BRACES = /\{\{\s{0,16}(leasehold:[^{}|\s]{0,1024})\s{0,16}(?:\|\s{0,16}([^{}\s]{0,32})\s{0,16})?\}\}/gi;

type Part = string | { readonly of: string; readonly isUrlEncoded: boolean };

export interface Template {
  readonly name: string;
  readonly parts: readonly Part[];
}

export interface ParsedTemplate {
  readonly template: Template;
  /** References named `NAME[1]` and so on, which are not valid names of variables. */
  readonly wanted: readonly EnvBinding[];
}

/** Returns null for a text without references in braces. @throws UsageError */
export function parseTemplate(name: string, text: string, where: string): ParsedTemplate | null {
  const parts: Part[] = [];
  const wanted: EnvBinding[] = [];
  let at = 0;
  for (const found of text.matchAll(BRACES)) {
    const [whole, reference = '', filter] = found;
    if (filter !== undefined && filter !== 'url') throw new UsageError(`${where}: after | only url may follow`);
    const of = `${name}[${wanted.length + 1}]`;
    parts.push(text.slice(at, found.index), { of, isUrlEncoded: filter === 'url' });
    wanted.push({ name: of, ...parseReference(reference, where) });
    at = found.index + whole.length;
  }
  if (wanted.length === 0) return null;
  parts.push(text.slice(at));
  for (const part of parts) if (typeof part === 'string') assertNoReference(part, where);
  return { template: { name, parts }, wanted };
}

/** Rejects a reference without braces, which the program would receive verbatim. @throws UsageError */
export function assertNoReference(text: string, where: string): void {
  if (!text.includes(SCHEME)) return;
  throw new UsageError(
    `${where}: a reference inside a value needs braces`,
    `Write {{${SCHEME}PATH}}, or {{${SCHEME}PATH | url}} where the value is part of a URL.`,
  );
}

export function fillTemplates(
  templates: readonly Template[],
  values: ReadonlyMap<string, Secret>,
): ReadonlyMap<string, Secret> {
  const filled = new Map(values);
  for (const { name, parts } of templates) {
    const texts = parts.map((part) => {
      if (typeof part === 'string') return part;
      filled.delete(part.of);
      const text = values.get(part.of)?.reveal() ?? '';
      return part.isUrlEncoded ? encodeForUrl(text) : text;
    });
    filled.set(name, new Secret(texts.join('')));
  }
  return filled;
}

/** Encodes for any part of a URL. SOURCE: RFC 3986, section 2.3: all except the unreserved characters */
function encodeForUrl(text: string): string {
  const toPercent = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, toPercent);
}
