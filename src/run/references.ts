/**
 * References to credentials: `leasehold://prod/db/password`, with a version `leasehold://prod/db/password?version=3`.
 * In a .env file `leasehold://openai/key?use` lets the program use the credential without its value.
 */

import { type CredentialPath, pathViolation } from '../core/path.ts';
import { UsageError } from '../platform/errors.ts';

const SCHEME = 'leasehold://';
/** Matches misspelt references too. */
const LOOKS_LIKE_ONE = /^\s*leasehold:/i;
const MAX_VERSION = Number.MAX_SAFE_INTEGER;

export interface Reference {
  readonly path: CredentialPath;
  /** Null for the newest version. */
  readonly version: number | null;
}

/** Whether a text must be parsed as a reference. For references inside a longer text see `templates.ts`. */
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
