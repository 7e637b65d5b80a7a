/** Parses the credentials of a program's variables: `--env NAME=path`, mappings, and .env files with references. */

import { UsageError } from '../platform/errors.ts';
import type { Secret } from '../vault/credentials/credential.ts';
import { readEnvFile } from './env-file.ts';
import type { EnvBinding } from './leases.ts';
import { isReference, parseReference, parseSource, parseUseReference } from './references.ts';
import { assertNoReference, parseTemplate, type Template } from './templates.ts';
import type { UseBinding } from './use-bindings.ts';

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
 * Later definitions of a name take precedence: files over the mapping, later files over earlier ones, and `env` over
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
