/**
 * Reads the sources of settings: a project's `leasehold.toml`, which is committed and contains no secrets, the user's
 * own file, variables, and the files of a data directory. Unknown fields are errors.
 */
import { lstatSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { isLoaderVariable } from '../../masking/secret-names.ts';
import { UsageError } from '../../platform/errors.ts';
import { childPath, dataDirPaths } from '../../platform/paths.ts';
import { isTrusted } from '../../platform/private-files.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import type { Terminal } from '../terminal.ts';

export interface FileSettings {
  readonly address?: string;
  readonly agent?: string;
  readonly key_file?: string;
  readonly output?: string;
  readonly timeout?: number | string;
  /** This and the following fields are allowed only in the user's file. */
  readonly token_file?: string;
  readonly ca_file?: string;
  readonly data_dir?: string;
  readonly trusted_addresses?: readonly string[];
}

export interface RunMapping {
  /** Maps a variable name to `path` or `leasehold://path?version=N`. */
  readonly variables: ReadonlyMap<string, string>;
  /** `PATH` or `NAME=PATH`: credentials that the program may use without seeing them. */
  readonly uses: readonly string[];
}

export interface SettingsFile {
  readonly path: string;
  readonly displayPath: string;
  readonly kind: 'project file' | 'user file';
  readonly settings: FileSettings;
  readonly profiles: ReadonlyMap<string, FileSettings>;
  readonly runs: ReadonlyMap<string, RunMapping>;
  readonly profile: string | null;
}

type Kind = 'text' | 'path' | 'duration' | 'texts';
const PROJECT_FIELDS: ReadonlyMap<string, Kind> = new Map([
  ['address', 'text'],
  ['agent', 'text'],
  ['key_file', 'path'],
  ['output', 'text'],
  ['timeout', 'duration'],
]);
const USER_FIELDS: ReadonlyMap<string, Kind> = new Map([
  ...PROJECT_FIELDS,
  ['token_file', 'path'],
  // WHY not in a project file: its author could intercept the connection and impersonate the server.
  ['ca_file', 'path'],
  ['data_dir', 'path'],
  ['trusted_addresses', 'texts'],
]);
const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const KINDS: Readonly<Record<Kind, readonly [name: string, isFit: (value: unknown) => boolean]>> = {
  text: ['string', isText],
  path: ['string', isText],
  duration: ['number of seconds or a duration', (value) => isText(value) || typeof value === 'number'],
  texts: ['list of strings', (value) => Array.isArray(value) && value.every((item) => typeof item === 'string')],
};
const PROJECT_FILE = 'leasehold.toml';
const MAX_FILE_BYTES = 256 * 1024;

/** The part of the terminal that determines where the files of the user are. */
export type UserContext = Pick<Terminal, 'workingDirectory' | 'environment'>;

export function homeOf({ environment }: UserContext): string {
  return environment['HOME'] || homedir();
}

export function userFilePath(user: UserContext): string {
  return join(user.environment['XDG_CONFIG_HOME'] || join(homeOf(user), '.config'), 'leasehold', 'config.toml');
}

/**
 * A file that was not read, because another user could have written it, or because it is not a regular file and reading
 * it could block.
 */
export interface SkippedFile {
  readonly path: string;
  readonly reason: string;
  readonly hint: string;
}

/**
 * Searches from the working directory up to the home directory or the root; both are null without a file. @throws
 * UsageError
 */
export async function readProjectFile(
  user: UserContext,
): Promise<{ readonly file: SettingsFile | null; readonly skipped: SkippedFile | null }> {
  for (let directory = resolve(user.workingDirectory); ; directory = dirname(directory)) {
    const path = join(directory, PROJECT_FILE);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found !== undefined) {
      const displayPath = relative(user.workingDirectory, path) || PROJECT_FILE;
      const skipped = checkSafe(path);
      return {
        file: skipped === null ? await readSettings(path, displayPath, 'project file', user) : null,
        skipped,
      };
    }
    if (directory === homeOf(user) || dirname(directory) === directory) return { file: null, skipped: null };
  }
}

export async function readUserFile(user: UserContext): Promise<SettingsFile | null> {
  const path = userFilePath(user);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
  const skipped = checkSafe(path);
  if (skipped !== null) throw new UsageError(`${path} ${skipped.reason}`, skipped.hint);
  return readSettings(path, path.replace(homeOf(user), '~'), 'user file', user);
}

function checkSafe(path: string): SkippedFile | null {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true) return { path, reason: 'is not a file', hint: `Delete or rename it: ${path}` };
  if (isTrusted(found)) return null;
  return {
    path,
    reason: 'belongs to another user, or other users can write to it',
    hint: `If it is yours: chmod go-w ${path}`,
  };
}

async function readSettings(
  path: string,
  displayPath: string,
  kind: SettingsFile['kind'],
  user: UserContext,
): Promise<SettingsFile> {
  const { parse } = await import('smol-toml');
  let table: Record<string, unknown>;
  try {
    table = parse(readBounded(path, displayPath), { unsafeKeyBehaviour: 'throw' });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const at = error instanceof Error && 'line' in error ? `, line ${String(error.line)}` : '';
    throw new UsageError(`${displayPath}${at}: the file is not valid TOML`);
  }
  const { profile = null, profiles = {}, run = {}, ...settings } = table;
  if (profile !== null && typeof profile !== 'string') throw new UsageError(`${displayPath}: profile must be a string`);
  if (!isTable(profiles)) throw new UsageError(`${displayPath}: profiles must be tables, as in [profiles.dev]`);
  const check = (values: unknown, where: string): FileSettings => {
    if (!isTable(values)) throw new UsageError(`${where} must be a table`);
    const toPath = (text: string): string => resolve(dirname(path), text.replace(/^~(?=\/|$)/, homeOf(user)));
    return checkFields(values, where, kind, toPath);
  };
  return {
    path,
    displayPath,
    kind,
    settings: check(settings, displayPath),
    profiles: new Map(
      Object.entries(profiles).map(([name, each]) => [name, check(each, `${displayPath} [profiles.${name}]`)]),
    ),
    runs: readRuns(run, displayPath),
    profile,
  };
}

/** A repository may contain a file of any size. @throws UsageError */
function readBounded(path: string, displayPath: string): string {
  if (statSync(path).size <= MAX_FILE_BYTES) return readFileSync(path, 'utf8');
  throw new UsageError(`${displayPath}: must be at most ${MAX_FILE_BYTES / 1024} KiB`);
}

/** WHY only paths: text around a value could send it to a URL that the file's author chose. @throws UsageError */
function readRuns(runs: unknown, displayPath: string): Map<string, RunMapping> {
  if (!isTable(runs)) throw new UsageError(`${displayPath}: run must be tables, as in [run.default]`);
  return new Map(
    Object.entries(runs).map(([name, table]) => {
      const where = `${displayPath} [run.${name}]`;
      if (!isTable(table)) throw new UsageError(`${where} must be a table`);
      const { use: uses = [], ...variables } = table;
      if (!isTexts(uses)) throw new UsageError(`${where}: use must be a list of paths, such as ["openai/key"]`);
      const paths = Object.entries(variables).map(([variable, path]): [string, string] => {
        if (typeof path !== 'string') throw new UsageError(`${where}: ${variable} must be the path of a credential`);
        if (isLoaderVariable(variable))
          throw new UsageError(`${where}: ${variable} changes how programs load code and must not be set here`);
        return [variable, path];
      });
      return [name, { variables: new Map(paths), uses }];
    }),
  );
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** Resolves paths relative to the file. @throws UsageError */
function checkFields(
  values: Record<string, unknown>,
  where: string,
  kind: SettingsFile['kind'],
  toPath: (text: string) => string,
): FileSettings {
  const known = kind === 'project file' ? PROJECT_FIELDS : USER_FIELDS;
  const fields = Object.entries(values).map(([name, value]) => {
    const wanted = known.get(name);
    if (wanted === undefined) {
      const isPrivate = kind === 'project file' && (USER_FIELDS.has(name) || /token|secret|password/i.test(name));
      const rule = isPrivate ? 'does not belong in a committed file' : 'is unknown';
      throw new UsageError(`${where}: ${name} ${rule}; the fields are ${[...known.keys()].join(', ')}`);
    }
    const [rule, isFit] = KINDS[wanted];
    if (!isFit(value)) throw new UsageError(`${where}: ${name} must be a ${rule}`);
    return [name, wanted === 'path' ? toPath(String(value)) : value];
  });
  return Object.fromEntries(fields);
}

export type FlagReader = (name: string) => string | null;

export interface Layer {
  readonly settings: FileSettings;
  readonly source: string;
  readonly level: SettingsFile['kind'];
}

/**
 * Whether a layer's settings are meant for another address: they are meant for the address that the same layer sets.
 */
export function isForAnotherAddress({ address }: FileSettings, used: string): boolean {
  return address !== undefined && address.replace(/\/+$/, '') !== used;
}

/** @throws UsageError for an empty variable */
export function readVariable({ environment }: Pick<UserContext, 'environment'>, name: string): string | null {
  const value = environment[name];
  if (value === '') throw new UsageError(`${name} is empty: set or unset it`);
  return value ?? null;
}

function readLine(file: string): string | null {
  try {
    return readFileSync(file, 'latin1').trim() || null;
  } catch {
    // The file is missing or not readable.
    return null;
  }
}

export function readPublishedAddress(dataDir: string): string | null {
  return readLine(dataDirPaths(dataDir).addressFile);
}

export function readAdminToken(dataDir: string): Secret | null {
  const token = readLine(dataDirPaths(dataDir).tokenFile);
  return token === null ? null : new Secret(token);
}

/** The key file of an agent whose key pair was made by the server. */
export function keyFileIn(dataDir: string, agent: string): string {
  return join(childPath(dataDirPaths(dataDir).agentsDir, agent), 'private_key.pem');
}
