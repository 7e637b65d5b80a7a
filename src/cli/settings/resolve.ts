/** Settings from all places, each with where it was said. */

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import { FORMATS, type Format } from '../output/output.ts';
import { parseDuration } from '../plural.ts';
import type { Terminal } from '../terminal.ts';
import { printNotice } from '../terminal.ts';
import {
  type FileSettings,
  type RunMapping,
  readProjectFile,
  readUserFile,
  type SettingsFile,
  type UserDirs,
} from './files.ts';
import { findIdentity } from './identity.ts';
import { readServiceAddress } from './local.ts';
import { Candidates, type OwnService, type Setting, type Settings } from './settings.ts';
import { type FlagReader, type Layer, readVariable } from './sources.ts';

const DEFAULT_ADDRESS = 'http://127.0.0.1:7700';
const DEFAULT_TIMEOUT_SECONDS = 30;

export function placesOf({ environment, folder }: Terminal): UserDirs {
  return { environment, folder, home: environment['HOME'] || homedir() };
}

/** @throws UsageError */
export async function resolveSettings(flag: FlagReader, terminal: Terminal): Promise<Settings> {
  const places = placesOf(terminal);
  const warn = (line: string): void => printNotice(terminal, `WARNING  ${line}`);
  const { file: project, unread: unreadFile } = await readProjectFile(places);
  if (unreadFile !== null) warn(`${unreadFile.path} is not read: it ${unreadFile.why}.`);
  const files = [project, await readUserFile(places)].filter((file) => file !== null);
  const profile = chooseProfile(flag, places, files);
  const layers = files.flatMap((file) => layersOf(file, profile?.value ?? null));
  if (profile !== null && !layers.some(({ by }) => by.endsWith(`[profiles.${profile.value}]`))) {
    throw new UsageError(`${profile.source}: no file has a profile ${JSON.stringify(profile.value)}`);
  }
  const choose = (name: string, variable: string, field: keyof FileSettings): Candidates<string> => {
    const candidates = new Candidates<string>()
      .add(flag(name), `--${name}`, 'flag')
      .add(readVariable(places, variable), variable, 'environment');
    for (const { settings, by, level } of layers) {
      const value = settings[field];
      if (value !== undefined) candidates.add(String(value), by, level);
    }
    return candidates;
  };
  const dataDirs = choose('data-dir', 'LEASEHOLD_DATA_DIR', 'data_dir');
  dataDirs.add(join(places.home, '.leasehold'), 'the default', 'default');
  const dataDir = first(dataDirs, (text) => resolve(places.folder, text));
  const addresses = choose('address', 'LEASEHOLD_ADDR', 'address');
  const own = readServiceAddress(dataDir.value);
  addresses.add(own, `daemon.address in ${dataDir.value}`, 'data directory');
  addresses.add(DEFAULT_ADDRESS, 'the default', 'default');
  const address = first(addresses, toAddress);
  const formats = choose('output', 'LEASEHOLD_OUTPUT', 'output').add('table', 'the default', 'default');
  const timeouts = choose('timeout', 'LEASEHOLD_TIMEOUT', 'timeout');
  timeouts.add(String(DEFAULT_TIMEOUT_SECONDS), 'the default', 'default');
  const insecure = flag('insecure-http') ?? readVariable(places, 'LEASEHOLD_INSECURE_HTTP');
  const identity = findIdentity({ flag, places, layers, address, dataDir: dataDir.value, serviceAddress: own, warn });
  return {
    address,
    dataDir,
    caFile: findCaFile(flag, places, layers, address.value),
    identity,
    ownService: findOwnService(address, identity, dataDir.value, own, terminal),
    format: first(formats, toFormat),
    timeoutSeconds: first(timeouts, toSeconds),
    allowsInsecureHttp: insecure === 'true' || insecure === '1',
    unreadFile,
    profile,
    runs: runsOf(files),
    overridden: [
      ...addresses.others.map((said) => ({ ...said, setting: 'address' })),
      ...dataDirs.others.map((said) => ({ ...said, setting: 'data directory' })),
    ],
  };
}

/** WHY not wherever the addresses are the same: what somebody types may be another service, behind a forwarded port. */
function findOwnService(
  address: Setting<string>,
  identity: Setting<unknown>,
  dataDir: string,
  own: string | null,
  { challengeService }: Terminal,
): OwnService | null {
  const isTrustedByIt = address.level === 'project file' && address.value === own;
  const comesOutOfIt = address.level === 'data directory' || identity.level === 'data directory' || isTrustedByIt;
  return own !== null && comesOutOfIt ? { dataDir, address: own, challengeService } : null;
}

/** The first file that has a name decides. */
function runsOf(files: readonly SettingsFile[]): Settings['runs'] {
  const runs = new Map<string, Setting<RunMapping>>();
  for (const { runs: own, shown, kind } of files.toReversed()) {
    for (const [name, value] of own) runs.set(name, { value, source: `${shown} [run.${name}]`, level: kind });
  }
  return runs;
}

/** What a file says next to another address is meant for that one. */
function findCaFile(
  flag: FlagReader,
  places: UserDirs,
  layers: readonly Layer[],
  address: string,
): Setting<string> | null {
  const candidates = new Candidates<string>()
    .add(flag('ca-file'), '--ca-file', 'flag')
    .add(readVariable(places, 'LEASEHOLD_CA_FILE'), 'LEASEHOLD_CA_FILE', 'environment');
  for (const { settings, by, level } of layers) {
    const isElsewhere = settings.address !== undefined && settings.address.replace(/\/+$/, '') !== address;
    if (!isElsewhere) candidates.add(settings.ca_file, `${by}, ca_file`, level);
  }
  const said = candidates.first;
  return said === null ? null : { ...said, value: resolve(places.folder, said.value) };
}

function chooseProfile(flag: FlagReader, places: UserDirs, files: readonly SettingsFile[]): Setting<string> | null {
  const candidates = new Candidates<string>()
    .add(flag('profile'), '--profile', 'flag')
    .add(readVariable(places, 'LEASEHOLD_PROFILE'), 'LEASEHOLD_PROFILE', 'environment');
  for (const { profile, shown, kind } of files) candidates.add(profile, `${shown}, profile`, kind);
  return candidates.first;
}

function layersOf({ settings, profiles, shown, kind }: SettingsFile, profile: string | null): Layer[] {
  const chosen = profile === null ? undefined : profiles.get(profile);
  return [
    ...(chosen === undefined ? [] : [{ settings: chosen, by: `${shown} [profiles.${profile}]`, level: kind }]),
    { settings, by: shown, level: kind },
  ];
}

function first<T>(candidates: Candidates<string>, convert: (text: string, by: string) => T): Setting<T> {
  const said = candidates.first;
  if (said === null) throw new Error('every setting has a default');
  return { ...said, value: convert(said.value, said.source) };
}

/** Nothing that a terminal or a shell would take for more than an address. */
const ADDRESS = /^(?:https?:\/\/[A-Za-z0-9.:[\]_~/-]+|unix:[^\p{Cc}\p{Cf}]+)$/u;

function toAddress(text: string, by: string): string {
  if (!ADDRESS.test(text)) throw new UsageError(`${by}: must be http://HOST:PORT, https://HOST:PORT, or unix:/PATH`);
  return text.replace(/\/+$/, '');
}

function toFormat(text: string, by: string): Format {
  const format = FORMATS.find((known) => known === text);
  if (format === undefined) throw new UsageError(`${by}: the output must be one of ${FORMATS.join(', ')}`);
  return format;
}

function toSeconds(text: string, by: string): number {
  const seconds = /^\d{1,6}\.\d{1,3}$/.test(text) ? Number(text) : (parseDuration(text) ?? Number.NaN);
  if (!(seconds > 0)) throw new UsageError(`${by}: the timeout must be seconds, or a duration such as 90s or 2m`);
  return seconds;
}
