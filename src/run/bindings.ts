/**
 * Parses the credentials of a program. `--env NAME=path`, mappings and .env files name a variable for a value. `--use
 * PATH` sets the variables of the SDKs of the credential’s service, and `--use NAME=PATH` sets `NAME_BASE_URL` and
 * `NAME_API_KEY`.
 */

import type { CredentialPath } from '../core/path.ts';
import { isLoaderVariable } from '../masking/secret-names.ts';
import { UsageError } from '../platform/errors.ts';
import type { Secret } from '../vault/credentials/credential.ts';
import { readEnvFile } from './env-file.ts';
import type { EnvBinding } from './leases.ts';
import {
  assertNoReference,
  isReference,
  parseReference,
  parseSource,
  parseTemplate,
  parseUseReference,
  type Template,
} from './references.ts';

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const MAX_NAME_LENGTH = 255;

export interface ParsedBindings {
  readonly wanted: readonly EnvBinding[];
  readonly templates: readonly Template[];
  /** References with `?use` in files. */
  readonly uses: readonly UseBinding[];
  readonly literals: readonly { readonly name: string; readonly value: Secret }[];
  /** Names that `--env` defines, which no other source overrides. */
  readonly explicit: ReadonlySet<string>;
}

export interface Sources {
  /** `NAME=path`, from a mapping in leasehold.toml. */
  readonly mapping?: readonly string[];
  readonly envFiles: readonly string[];
  /** `NAME=path`, or `NAME=` followed by a text with references in braces. */
  readonly env: readonly string[];
}

type Given =
  | { readonly wanted: readonly EnvBinding[]; readonly template?: Template }
  | { readonly use: UseBinding }
  | { readonly literal: Secret };

/**
 * Later definitions of a name take precedence: files over the mapping, later files over previous ones, and `env` over
 * all. @throws UsageError
 */
export async function parseBindings({ mapping = [], envFiles, env }: Sources): Promise<ParsedBindings> {
  const given = new Map<string, Given>();
  for (const each of mapping) {
    const { name, source } = parsePair(each, 'run');
    given.set(name, { wanted: [{ name, ...parseSource(source, name) }] });
  }
  for (const file of envFiles) {
    for (const { name, value, line } of await readEnvFile(file)) {
      const where = `${file}, line ${line}`;
      checkName(name, where);
      given.set(name, parseText(name, value, where));
    }
  }
  const explicit = new Set<string>();
  for (const each of env) {
    const { name, source } = parsePair(each, '--env');
    explicit.add(name);
    const where = `--env ${name}`;
    const template = parseTemplate(name, source, where);
    given.set(name, template ?? { wanted: [{ name, ...parseSource(source, where) }] });
  }
  const all = [...given];
  return {
    wanted: all.flatMap(([, each]) => ('wanted' in each ? each.wanted : [])),
    uses: all.flatMap(([, each]) => ('use' in each ? [each.use] : [])),
    templates: all.flatMap(([, each]) => ('template' in each ? [each.template] : [])),
    literals: all.flatMap(([name, each]) => ('literal' in each ? [{ name, value: each.literal }] : [])),
    explicit,
  };
}

/** The bindings without the overridden variables. A template's references have names such as `NAME[1]`. */
export function withoutNames(bindings: ParsedBindings, names: Pick<ReadonlySet<string>, 'has'>): ParsedBindings {
  const isKept = ({ name }: { readonly name: string }): boolean => !names.has(name.replace(/\[\d+\]$/, ''));
  const { wanted, templates, literals } = bindings;
  return {
    ...bindings,
    wanted: wanted.filter(isKept),
    templates: templates.filter(isKept),
    literals: literals.filter(isKept),
  };
}

/** Parses a reference, a text with references in braces, or a literal. @throws UsageError */
function parseText(name: string, value: Secret, where: string): Given {
  const text = value.reveal();
  if (isReference(text)) {
    const used = parseUseReference(text, where);
    if (used !== null) return { use: { name: where, path: used, prefix: null, variable: name } };
    return { wanted: [{ name, ...parseReference(text, where) }] };
  }
  if (text.includes('\0')) throw new UsageError(`${where}: must not contain a NUL, which no environment can hold`);
  const template = parseTemplate(name, text, where);
  if (template !== null) return template;
  assertNoReference(text, where);
  return { literal: value };
}

function parsePair(text: string, where: string): { name: string; source: string } {
  const sign = text.indexOf('=');
  if (sign === -1)
    throw new UsageError('--env: must be NAME=path', 'The path names a credential, as in --env TOKEN=prod/api/token.');
  const name = text.slice(0, sign);
  checkName(name, where);
  return { name, source: text.slice(sign + 1) };
}

function checkName(name: string, where: string): void {
  if (!NAME.test(name) || name.length > MAX_NAME_LENGTH || name === '__proto__')
    throw new UsageError(
      `${where}: the name of a variable must begin with a letter or _, and have letters, digits, _ . - only`,
    );
}

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
    if (version !== null) throw new UsageError(`${where}: a use takes the newest version, so omit ?version=N`);
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
