/**
 * Reads the operator's TOML file of the commands that a model may run. A command is a program with fixed arguments, and
 * the credentials that its environment variables get. An unknown field is an error, so that a typo loosens no rule.
 */

import { readFile } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import type { Static } from 'typebox';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Pattern, parsePattern } from '../core/pattern.ts';
import { isLoaderVariable } from '../masking/loader-variables.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { checkTrustedPath } from '../platform/ownership.ts';
import { strict } from './tool.ts';

export type AllowedCommand = Readonly<ReturnType<typeof readCommand>>;

const FIELD = '--commands';
const MAX_FILE_BYTES = 256 * 1024;
const NAME = /^[a-z][a-z0-9_-]{0,39}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;

const text = (minLength: number, maxLength: number) =>
  Type.String({ minLength, maxLength, pattern: String.raw`^[^\u0000]*$` });
const number = (minimum: number, maximum: number) => Type.Optional(Type.Integer({ minimum, maximum }));

export const COMMAND_TABLE = strict({
  description: text(1, 300),
  program: text(1, 4096),
  arguments: Type.Optional(Type.Array(text(0, 4096), { maxItems: 64 })),
  directory: text(1, 4096),
  credentials: Type.Record(Type.String(), text(1, 512), { maxProperties: 32 }),
  variables: Type.Optional(Type.Record(Type.String(), text(0, 4096))),
  extra_arguments: Type.Optional(
    strict({ pattern: text(1, 500), most: number(1, 32), allow_options: Type.Optional(Type.Boolean()) }),
  ),
  time_limit_seconds: number(1, 3600),
  output_limit_bytes: number(0, 1_048_576),
});
type Table = Static<typeof COMMAND_TABLE>;

const FILE = strict({ commands: Type.Record(Type.String(), COMMAND_TABLE, { minProperties: 1, maxProperties: 64 }) });

/** `path` is absolute. Only the operator and root may change the file. @throws UsageError */
export async function readAllowList(path: string): Promise<AllowedCommand[]> {
  const found = await checkTrustedPath(path, FIELD);
  // WHY before reading: reading a pipe would block.
  if (!found.isFile()) throw new UsageError(`${FIELD}: must be a file`);
  if (found.size > MAX_FILE_BYTES) throw new UsageError(`${FIELD}: the file is longer than 256 KiB`);
  try {
    return parseAllowList(await readFile(path, 'utf8'));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${FIELD}: cannot be read${errnoSuffix(error)}`);
  }
}

/** @throws UsageError naming the command's field and the rule */
export function parseAllowList(content: string): AllowedCommand[] {
  let document: unknown;
  try {
    document = parse(content);
  } catch (error) {
    const where = error instanceof TomlError ? ` (line ${error.line}, column ${error.column})` : '';
    throw new UsageError(`--commands: the file is not valid TOML${where}`);
  }
  if (!Value.Check(FILE, document)) throw new UsageError(violation(document));
  return Object.entries(document.commands).map(([name, table]) => readCommand(name, table));
}

/** The first field that breaks the schema, and the rule. The validator's messages contain no values. */
function violation(document: unknown): string {
  const errors = Value.Errors(FILE, document);
  // An unknown field first: it may be a misspelt one that is missing.
  const error = errors.find(({ keyword }) => keyword === 'boolean') ?? errors[0];
  const missing = error?.keyword === 'required' ? error.params.requiredProperties[0] : undefined;
  const path = [...(error?.instancePath.split('/').slice(1) ?? []), ...(missing === undefined ? [] : [missing])];
  const rule = error?.keyword === 'boolean' ? 'is unknown' : missing === undefined ? error?.message : 'is missing';
  return `${path.join('.')}: ${rule}`;
}

function readCommand(name: string, table: Table) {
  const fail = (field: string, rule: string): UsageError => new UsageError(`commands.${name}${field}: ${rule}`);
  if (!NAME.test(name)) throw fail('', 'must be 1 to 40 of a-z 0-9 _ - and begin with a letter');
  for (const field of ['program', 'directory'] as const) {
    if (!isAbsolute(table[field])) throw fail(`.${field}`, 'must be an absolute path');
  }
  for (const field of ['credentials', 'variables'] as const) {
    const wrong = Object.keys(table[field] ?? {}).find((variable) => !VARIABLE.test(variable));
    if (wrong !== undefined) throw fail(`.${field}.${wrong}`, 'must be a name of a variable: A-Z a-z 0-9 _');
  }
  const variables: ReadonlyMap<string, string> = new Map(Object.entries(table.variables ?? {}));
  const credentials = new Map<string, Pattern>();
  for (const [variable, path] of Object.entries(table.credentials)) {
    const field = `.credentials.${variable}`;
    if (isLoaderVariable(variable)) throw fail(field, 'must not be a variable that changes how programs load code');
    if (variables.has(variable)) throw fail(`.variables.${variable}`, 'must not be in credentials too');
    try {
      credentials.set(variable, parsePattern(path, variable));
    } catch {
      throw fail(field, 'must be a path such as prod/db/password, or a pattern such as prod/db/*');
    }
  }
  return {
    name,
    description: table.description,
    program: table.program,
    arguments: table.arguments ?? [],
    /** The working directory. */
    directory: table.directory,
    /** By variable: a path, or a pattern among whose paths the model chooses. */
    credentials,
    /** Further variables, which are not secret. */
    variables,
    extraArguments: table.extra_arguments === undefined ? null : readExtra(table.extra_arguments, fail),
    timeLimitSeconds: table.time_limit_seconds ?? 60,
    outputLimitBytes: table.output_limit_bytes ?? 65_536,
  };
}

function readExtra(
  { pattern: source, most = 1, allow_options = false }: NonNullable<Table['extra_arguments']>,
  fail: (field: string, rule: string) => UsageError,
) {
  try {
    // WHY compiled alone first: `a)|(b` would escape from the group.
    new RegExp(source, 'u');
    return { pattern: new RegExp(`^(?:${source})$`, 'u'), most, allowsOptions: allow_options };
  } catch {
    throw fail('.extra_arguments.pattern', 'must be a regular expression that matches a whole argument');
  }
}
