/**
 * Parses the credentials that a program may use without seeing them. `PATH` sets the variables of its service's SDKs,
 * and `NAME=PATH` sets `NAME_BASE_URL` and `NAME_API_KEY`. A .env file names the variable of the key instead.
 */
import type { CredentialPath } from '../core/path.ts';
import { isLoaderVariable } from '../masking/secret-names.ts';
import { UsageError } from '../platform/errors.ts';
import { parseSource } from './references.ts';

export interface UseBinding {
  /** The name in errors: the flag, or the place in a settings file. */
  readonly name: string;
  readonly path: CredentialPath;
  /** The prefix of the variables' names; null for the names that the service's SDKs use. */
  readonly prefix: string | null;
  /** The variable of a .env file that receives the token; null for a flag or a setting. */
  readonly variable: string | null;
}

/** A path may contain `=`. Then it must be written with `leasehold://`. */
const WITH_PREFIX = /^([^=/]*)=(.*)$/s;
const PREFIX = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** `where` is the beginning of the error message. @throws UsageError */
export function parseUses(texts: readonly string[], where: string): UseBinding[] {
  return texts.map((text) => {
    const [, prefix = null, source = text] = WITH_PREFIX.exec(text) ?? [];
    if (prefix !== null) checkPrefix(prefix, where);
    const { path, version } = parseSource(source, where);
    if (version !== null)
      throw new UsageError(`${where}: a use takes the newest version, so ?version=N must be left out`);
    return { name: where, path, prefix, variable: null };
  });
}

function checkPrefix(prefix: string, where: string): void {
  if (!PREFIX.test(prefix)) {
    throw new UsageError(
      `${where}: the NAME of NAME=PATH must begin with a letter or _, and have letters, digits and _ only`,
      'A path with = is written leasehold://PATH.',
    );
  }
  const variable = namesFor(prefix).find(isLoaderVariable);
  if (variable !== undefined)
    throw new UsageError(`${where}: ${variable} changes how programs load code and must not be set here`);
}

export function namesFor(prefix: string): readonly [baseUrl: string, key: string] {
  return [`${prefix}_BASE_URL`, `${prefix}_API_KEY`];
}

const KEY_ENDING = /(?:^|_)(?:(?:API|ACCESS|AUTH|PRIVATE|SECRET)_?){0,2}(?:KEY|PASSWORD|SECRET|TOKEN)$/i;

/** The variable for the base URL next to the one for the key: `STRIPE_BASE_URL` for `STRIPE_SECRET_KEY`. */
export function baseUrlVariable(keyVariable: string): string {
  return `${keyVariable.replace(KEY_ENDING, '') || keyVariable}_BASE_URL`;
}
