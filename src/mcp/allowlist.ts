/**
 * Reads the operator's TOML file of the commands that a model may run. A command is a program with fixed arguments, and
 * the credentials that its environment variables get. An unknown field is an error, so that a typo loosens no rule.
 */

import { readFile } from 'node:fs/promises';
import { parse, TomlError } from 'smol-toml';
import { type Pattern, parsePattern } from '../core/pattern.ts';
import { isLoaderVariable } from '../masking/loader-variables.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { checkTrustedPath } from '../platform/ownership.ts';
import { Fields } from './table-reader.ts';

interface ExtraArguments {
  /** Must match a whole argument. */
  readonly pattern: RegExp;
  readonly most: number;
  /** Whether an argument may begin with a dash. */
  readonly allowsOptions: boolean;
}

export interface AllowedCommand {
  readonly name: string;
  readonly description: string;
  /** Absolute. */
  readonly program: string;
  readonly arguments: readonly string[];
  /** The working directory; absolute. */
  readonly directory: string;
  /** By variable: a path, or a pattern among whose paths the model chooses. */
  readonly credentials: ReadonlyMap<string, Pattern>;
  /** Further variables, which are not secret. */
  readonly variables: ReadonlyMap<string, string>;
  /** Null to allow none, the default. */
  readonly extraArguments: ExtraArguments | null;
  readonly timeLimitSeconds: number;
  readonly outputLimitBytes: number;
}

const FIELD = '--commands';
const MAX_FILE_BYTES = 256 * 1024;
const MAX_COMMANDS = 64;
const NAME = /^[a-z][a-z0-9_-]{0,39}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;
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
export function parseAllowList(text: string): AllowedCommand[] {
  let document: Record<string, unknown>;
  try {
    document = parse(text);
  } catch (error) {
    const where = error instanceof TomlError ? ` (line ${error.line}, column ${error.column})` : '';
    throw new UsageError(`--commands: the file is not valid TOML${where}`);
  }
  const top = new Fields(document, '', ['commands']);
  const commands = top.table('commands');
  const names = commands.names();
  if (names.length === 0 || names.length > MAX_COMMANDS) {
    throw new UsageError(`commands: there must be 1 to ${MAX_COMMANDS}, each as [commands.NAME]`);
  }
  return names.map((name) => {
    if (!NAME.test(name)) throw commands.broken(name, 'must be 1 to 40 of a-z 0-9 _ - and begin with a letter');
    return readCommand(name, commands.table(name, KNOWN));
  });
}

const KNOWN = [
  'description',
  'program',
  'arguments',
  'directory',
  'credentials',
  'variables',
  'extra_arguments',
  'time_limit_seconds',
  'output_limit_bytes',
];

function readCommand(name: string, fields: Fields): AllowedCommand {
  return {
    name,
    description: fields.text('description', { least: 1, most: 300 }),
    program: fields.absolute('program'),
    arguments: fields.texts('arguments'),
    directory: fields.absolute('directory'),
    credentials: readCredentials(fields),
    variables: readVariables(fields),
    extraArguments: readExtra(fields),
    timeLimitSeconds: fields.number('time_limit_seconds', { least: 1, most: 3600, otherwise: 60 }),
    outputLimitBytes: fields.number('output_limit_bytes', { least: 0, most: 1_048_576, otherwise: 65_536 }),
  };
}

function readCredentials(command: Fields): Map<string, Pattern> {
  const fields = command.table('credentials');
  const names = fields.names();
  if (names.length > 32) throw command.broken('credentials', 'must be at most 32');
  return new Map(
    names.map((variable) => {
      if (!VARIABLE.test(variable)) throw fields.broken(variable, 'must be a name of a variable: A-Z a-z 0-9 _');
      if (isLoaderVariable(variable))
        throw fields.broken(variable, 'must not be a variable that changes how programs load code');
      const text = fields.text(variable, { least: 1, most: 512 });
      try {
        return [variable, parsePattern(text, variable)];
      } catch {
        throw fields.broken(variable, 'must be a path such as prod/db/password, or a pattern such as prod/db/*');
      }
    }),
  );
}

function readVariables(command: Fields): Map<string, string> {
  const fields = command.optionalTable('variables');
  if (fields === null) return new Map();
  const credentials = new Set(command.table('credentials').names());
  return new Map(
    fields.names().map((variable) => {
      if (!VARIABLE.test(variable)) throw fields.broken(variable, 'must be a name of a variable: A-Z a-z 0-9 _');
      if (credentials.has(variable)) throw fields.broken(variable, 'must not be in credentials too');
      return [variable, fields.text(variable, { least: 0, most: 4096 })];
    }),
  );
}

function readExtra(command: Fields): ExtraArguments | null {
  const fields = command.optionalTable('extra_arguments', ['pattern', 'most', 'allow_options']);
  if (fields === null) return null;
  const source = fields.text('pattern', { least: 1, most: 500 });
  let pattern: RegExp;
  try {
    // WHY compiled alone first: `a)|(b` would escape from the group.
    new RegExp(source, 'u');
    pattern = new RegExp(`^(?:${source})$`, 'u');
  } catch {
    throw fields.broken('pattern', 'must be a regular expression that matches a whole argument');
  }
  return {
    pattern,
    most: fields.number('most', { least: 1, most: 32, otherwise: 1 }),
    allowsOptions: fields.isOn('allow_options'),
  };
}
