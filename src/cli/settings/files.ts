/**
 * The files that settings stand in: `leasehold.toml` of a project, which is committed and holds no secret, and the user's own. Strict:
 * what is misspelt is refused.
 */

import { lstatSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { isLoaderVariable } from '../../masking/loader-variables.ts';
import { UsageError } from '../../platform/errors.ts';

export interface FileSettings {
  readonly address?: string;
  readonly agent?: string;
  readonly key_file?: string;
  readonly output?: string;
  readonly timeout?: number | string;
  /** The user's file alone. */
  readonly token_file?: string;
  readonly ca_file?: string;
  readonly data_dir?: string;
  readonly trusted_addresses?: readonly string[];
}

/** By variable, `path` or `leasehold://path?version=N`. */
export type RunMapping = ReadonlyMap<string, string>;

export interface SettingsFile {
  readonly path: string;
  /** For people: `./leasehold.toml`, `~/.config/leasehold/config.toml`. */
  readonly shown: string;
  readonly kind: 'project file' | 'user file';
  readonly settings: FileSettings;
  readonly profiles: ReadonlyMap<string, FileSettings>;
  /** `[run.NAME]`: for a program's variables the paths of credentials. */
  readonly runs: ReadonlyMap<string, RunMapping>;
  /** Which profile it asks for where nobody else says. */
  readonly profile: string | null;
}

type Kind = 'text' | 'duration' | 'texts';
const PROJECT_FIELDS: Readonly<Record<string, Kind>> = {
  address: 'text',
  agent: 'text',
  key_file: 'text',
  output: 'text',
  timeout: 'duration',
};
const USER_FIELDS: Readonly<Record<string, Kind>> = {
  ...PROJECT_FIELDS,
  token_file: 'text',
  // WHY not in a project's: an author of that file who intercepts the connection could impersonate the service.
  ca_file: 'text',
  data_dir: 'text',
  trusted_addresses: 'texts',
};
const KINDS = { text: 'text', duration: 'number of seconds, or a duration', texts: 'list of texts' } as const;
const PROJECT_FILE = 'leasehold.toml';

export interface UserDirs {
  readonly folder: string;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export function userFilePath({ home, environment }: UserDirs): string {
  return join(environment['XDG_CONFIG_HOME'] || join(home, '.config'), 'leasehold', 'config.toml');
}

/** Whoever may write a file above the folder must not say where tokens go; and what is no file may be a pipe, which would be waited for. */
export interface SkippedFile {
  readonly path: string;
  readonly why: string;
  /** How to mend it. */
  readonly hint: string;
}

/** From the folder upwards, as far as the home directory or the root; both null where there is none. @throws UsageError */
export async function readProjectFile(
  places: UserDirs,
): Promise<{ readonly file: SettingsFile | null; readonly unread: SkippedFile | null }> {
  for (let folder = resolve(places.folder); ; folder = dirname(folder)) {
    const path = join(folder, PROJECT_FILE);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found !== undefined) {
      const shown = relative(places.folder, path) || PROJECT_FILE;
      const unread = unreadable(path);
      return { file: unread === null ? await readSettings(path, shown, 'project file', places) : null, unread };
    }
    if (folder === places.home || dirname(folder) === folder) return { file: null, unread: null };
  }
}

export async function readUserFile(places: UserDirs): Promise<SettingsFile | null> {
  const path = userFilePath(places);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
  const unread = unreadable(path);
  if (unread !== null) throw new UsageError(`${path} ${unread.why}`, unread.hint);
  return readSettings(path, path.replace(places.home, '~'), 'user file', places);
}

/** Null where it may be read. */
function unreadable(path: string): SkippedFile | null {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true) return { path, why: 'is no file', hint: `Remove it, or give it another name: ${path}` };
  const { uid, mode } = found;
  const self = process.getuid?.();
  const isOurs = (self === undefined || uid === self || uid === 0) && (mode & 0o022) === 0;
  if (isOurs) return null;
  return { path, why: 'belongs to another user, or others may write it', hint: `If it is yours: chmod go-w ${path}` };
}

async function readSettings(
  path: string,
  shown: string,
  kind: SettingsFile['kind'],
  places: UserDirs,
): Promise<SettingsFile> {
  const { parse } = await import('smol-toml');
  let table: Record<string, unknown>;
  try {
    table = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const at = error instanceof Error && 'line' in error ? `, line ${String(error.line)}` : '';
    throw new UsageError(`${shown}${at}: it is no TOML`);
  }
  const { profile = null, profiles = {}, run = {}, ...settings } = table;
  if (profile !== null && typeof profile !== 'string') throw new UsageError(`${shown}: profile must be a text`);
  if (!isTable(profiles)) throw new UsageError(`${shown}: profiles must be tables, as in [profiles.dev]`);
  const check = (values: unknown, where: string): FileSettings => {
    if (!isTable(values)) throw new UsageError(`${where} must be a table`);
    return absolute(checkFields(values, where, kind), path, places);
  };
  return {
    path,
    shown,
    kind,
    settings: check(settings, shown),
    profiles: new Map(
      Object.entries(profiles).map(([name, each]) => [name, check(each, `${shown} [profiles.${name}]`)]),
    ),
    runs: readRuns(run, shown),
    profile,
  };
}

/** WHY paths alone: a text around a value could send it to an address that the file's author chose. @throws UsageError */
function readRuns(runs: unknown, shown: string): Map<string, RunMapping> {
  if (!isTable(runs)) throw new UsageError(`${shown}: run must be tables, as in [run.default]`);
  return new Map(
    Object.entries(runs).map(([name, variables]) => {
      const where = `${shown} [run.${name}]`;
      if (!isTable(variables)) throw new UsageError(`${where} must be a table`);
      const paths = Object.entries(variables).map(([variable, path]): [string, string] => {
        if (typeof path !== 'string') throw new UsageError(`${where}: ${variable} must be the path of a credential`);
        if (isLoaderVariable(variable))
          throw new UsageError(`${where}: ${variable} steers other programs and must not be set here`);
        return [variable, path];
      });
      return [name, new Map(paths)];
    }),
  );
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function checkFields(values: Record<string, unknown>, where: string, kind: SettingsFile['kind']): FileSettings {
  const known = kind === 'project file' ? PROJECT_FIELDS : USER_FIELDS;
  for (const [name, value] of Object.entries(values)) {
    const wanted = Object.hasOwn(known, name) ? known[name] : undefined;
    if (wanted === undefined) {
      const isPrivate =
        kind === 'project file' && (Object.hasOwn(USER_FIELDS, name) || /token|secret|password/i.test(name));
      const rule = isPrivate ? 'does not belong in a file that is committed' : 'is not known';
      throw new UsageError(`${where}: ${name} ${rule}; there are ${Object.keys(known).join(', ')}`);
    }
    const isFit =
      wanted === 'texts'
        ? Array.isArray(value) && value.every((item) => typeof item === 'string')
        : value !== '' && (typeof value === 'string' || (wanted === 'duration' && typeof value === 'number'));
    if (!isFit) throw new UsageError(`${where}: ${name} must be a ${KINDS[wanted]}`);
  }
  return values;
}

/** Paths are meant from where the file lies. */
function absolute(settings: FileSettings, path: string, { home }: UserDirs): FileSettings {
  const from = (text: string): string => {
    const whole = text.replace(/^~(?=\/|$)/, home);
    return isAbsolute(whole) ? whole : join(dirname(path), whole);
  };
  const { key_file, token_file, ca_file, data_dir } = settings;
  return {
    ...settings,
    ...(key_file === undefined ? {} : { key_file: from(key_file) }),
    ...(token_file === undefined ? {} : { token_file: from(token_file) }),
    ...(ca_file === undefined ? {} : { ca_file: from(ca_file) }),
    ...(data_dir === undefined ? {} : { data_dir: from(data_dir) }),
  };
}
