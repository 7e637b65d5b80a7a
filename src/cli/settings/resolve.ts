/** Resolves every setting, each with its source. */

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import { parseDuration } from '../flags.ts';
import { FORMATS, type Format } from '../output/output.ts';
import type { Terminal } from '../terminal.ts';
import { printNotice } from '../terminal.ts';
import { readServiceAddress } from './data-dir.ts';
import {
  type FileSettings,
  type FlagReader,
  type Layer,
  type RunMapping,
  readProjectFile,
  readUserFile,
  readVariable,
  type SettingsFile,
  type UserDirs,
} from './files.ts';
import { findIdentity } from './identity.ts';
import { Candidates, type OwnService, type Setting, type Settings } from './settings.ts';

const DEFAULT_ADDRESS = 'http://127.0.0.1:7700';
const DEFAULT_TIMEOUT_SECONDS = 30;

export function userDirsOf({ environment, workingDirectory }: Terminal): UserDirs {
  return { environment, workingDirectory, home: environment['HOME'] || homedir() };
}

/** @throws UsageError */
export async function resolveSettings(flag: FlagReader, terminal: Terminal): Promise<Settings> {
  const userDirs = userDirsOf(terminal);
  const warn = (line: string): void => printNotice(terminal, `WARNING  ${line}`);
  const { file: project, skipped: skippedFile } = await readProjectFile(userDirs);
  if (skippedFile !== null) warn(`${skippedFile.path} is not read: it ${skippedFile.reason}.`);
  const files = [project, await readUserFile(userDirs)].filter((file) => file !== null);
  const profile = chooseProfile(flag, userDirs, files);
  const layers = files.flatMap((file) => layersOf(file, profile?.value ?? null));
  if (profile !== null && !layers.some(({ source }) => source.endsWith(`[profiles.${profile.value}]`))) {
    throw new UsageError(`${profile.source}: no settings file contains the profile ${JSON.stringify(profile.value)}`);
  }
  const choose = (name: string, variable: string, field: keyof FileSettings): Candidates<string> => {
    const candidates = new Candidates<string>()
      .add(flag(name), `--${name}`, 'flag')
      .add(readVariable(userDirs, variable), variable, 'environment');
    for (const { settings, source, level } of layers) {
      const value = settings[field];
      if (value !== undefined) candidates.add(String(value), source, level);
    }
    return candidates;
  };
  const dataDirs = choose('data-dir', 'LEASEHOLD_DATA_DIR', 'data_dir');
  dataDirs.add(join(userDirs.home, '.leasehold'), 'the default', 'default');
  const dataDir = first(dataDirs, (text) => resolve(userDirs.workingDirectory, text));
  const addresses = choose('address', 'LEASEHOLD_ADDR', 'address');
  const own = readServiceAddress(dataDir.value);
  addresses.add(own, `daemon.address in ${dataDir.value}`, 'data directory');
  addresses.add(DEFAULT_ADDRESS, 'the default', 'default');
  const address = first(addresses, toAddress);
  const formats = choose('output', 'LEASEHOLD_OUTPUT', 'output').add('table', 'the default', 'default');
  const timeouts = choose('timeout', 'LEASEHOLD_TIMEOUT', 'timeout');
  timeouts.add(String(DEFAULT_TIMEOUT_SECONDS), 'the default', 'default');
  const insecure = flag('insecure-http') ?? readVariable(userDirs, 'LEASEHOLD_INSECURE_HTTP');
  const identity = findIdentity({ flag, userDirs, layers, address, dataDir: dataDir.value, serviceAddress: own, warn });
  return {
    address,
    dataDir,
    caFile: findCaFile(flag, userDirs, layers, address.value),
    identity,
    ownService: findOwnService(address, identity, dataDir.value, own, terminal),
    format: first(formats, toFormat),
    timeoutSeconds: first(timeouts, toSeconds),
    allowsInsecureHttp: insecure === 'true' || insecure === '1',
    skippedFile,
    profile,
    runs: runsOf(files),
    overridden: [
      ...addresses.others.map((setting) => ({ ...setting, setting: 'address' })),
      ...dataDirs.others.map((setting) => ({ ...setting, setting: 'data directory' })),
    ],
  };
}

/** WHY equal addresses are not enough: an address given explicitly may be another service behind a forwarded port. */
function findOwnService(
  address: Setting<string>,
  identity: Setting<unknown>,
  dataDir: string,
  own: string | null,
  { challengeService }: Terminal,
): OwnService | null {
  const isTrustedByDataDir = address.level === 'project file' && address.value === own;
  const comesFromDataDir =
    address.level === 'data directory' || identity.level === 'data directory' || isTrustedByDataDir;
  return own !== null && comesFromDataDir ? { dataDir, address: own, challengeService } : null;
}

/** The project file takes precedence over the user file. */
function runsOf(files: readonly SettingsFile[]): Settings['runs'] {
  const runs = new Map<string, Setting<RunMapping>>();
  for (const { runs: own, displayPath, kind } of files.toReversed()) {
    for (const [name, value] of own) runs.set(name, { value, source: `${displayPath} [run.${name}]`, level: kind });
  }
  return runs;
}

/** Ignores a layer that sets another address, because its ca_file is meant for that address. */
function findCaFile(
  flag: FlagReader,
  userDirs: UserDirs,
  layers: readonly Layer[],
  address: string,
): Setting<string> | null {
  const candidates = new Candidates<string>()
    .add(flag('ca-file'), '--ca-file', 'flag')
    .add(readVariable(userDirs, 'LEASEHOLD_CA_FILE'), 'LEASEHOLD_CA_FILE', 'environment');
  for (const { settings, source, level } of layers) {
    const isElsewhere = settings.address !== undefined && settings.address.replace(/\/+$/, '') !== address;
    if (!isElsewhere) candidates.add(settings.ca_file, `${source}, ca_file`, level);
  }
  const setting = candidates.first;
  return setting === null ? null : { ...setting, value: resolve(userDirs.workingDirectory, setting.value) };
}

function chooseProfile(flag: FlagReader, userDirs: UserDirs, files: readonly SettingsFile[]): Setting<string> | null {
  const candidates = new Candidates<string>()
    .add(flag('profile'), '--profile', 'flag')
    .add(readVariable(userDirs, 'LEASEHOLD_PROFILE'), 'LEASEHOLD_PROFILE', 'environment');
  for (const { profile, displayPath, kind } of files) candidates.add(profile, `${displayPath}, profile`, kind);
  return candidates.first;
}

function layersOf({ settings, profiles, displayPath, kind }: SettingsFile, profile: string | null): Layer[] {
  const chosen = profile === null ? undefined : profiles.get(profile);
  return [
    ...(chosen === undefined
      ? []
      : [{ settings: chosen, source: `${displayPath} [profiles.${profile}]`, level: kind }]),
    { settings, source: displayPath, level: kind },
  ];
}

function first<T>(candidates: Candidates<string>, convert: (text: string, source: string) => T): Setting<T> {
  const setting = candidates.first;
  if (setting === null) throw new Error('every setting has a default');
  return { ...setting, value: convert(setting.value, setting.source) };
}

/** Excludes characters with a meaning to terminals and shells. */
const ADDRESS = /^(?:https?:\/\/[A-Za-z0-9.:[\]_~/-]+|unix:[^\p{Cc}\p{Cf}]+)$/u;

function toAddress(text: string, source: string): string {
  if (!ADDRESS.test(text))
    throw new UsageError(`${source}: must be http://HOST:PORT, https://HOST:PORT, or unix:/PATH`);
  return text.replace(/\/+$/, '');
}

function toFormat(text: string, source: string): Format {
  const format = FORMATS.find((known) => known === text);
  if (format === undefined) throw new UsageError(`${source}: must be one of ${FORMATS.join(', ')}`);
  return format;
}

function toSeconds(text: string, source: string): number {
  const seconds = /^\d{1,6}\.\d{1,3}$/.test(text) ? Number(text) : (parseDuration(text) ?? Number.NaN);
  if (!(seconds > 0)) throw new UsageError(`${source}: must be a number of seconds or a duration such as 90s or 2m`);
  return seconds;
}
