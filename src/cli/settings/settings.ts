/** The settings of a command, each with its source. Precedence: flag, environment, project file, user file, default. */

import { join, resolve } from 'node:path';
import { OPERATOR_PREFIX } from '../../core/names.ts';
import { CLIENT_FLAGS, FORMATS } from '../../flags/client-flags.ts';
import { readFlags } from '../../flags/command-line.ts';
import { parseDuration } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import type { Secret } from '../../vault/credentials/credential.ts';
import type { Format } from '../output/cells.ts';
import { type ChallengeServer, printNotice, type Terminal } from '../terminal.ts';
import {
  type FileSettings,
  type FlagReader,
  homeOf,
  isForAnotherAddress,
  type Layer,
  type RunMapping,
  readProjectFile,
  readPublishedAddress,
  readUserFile,
  readVariable,
  type SettingsFile,
  type SkippedFile,
} from './files.ts';
import { findIdentity } from './own-identity.ts';

/** The precedence levels, the highest first. */
export type Precedence = 'flag' | 'environment' | 'project file' | 'user file' | 'login' | 'data directory' | 'default';

export interface Setting<T> {
  readonly value: T;
  /**
   * The name of the source in messages: `--address`, `LEASEHOLD_ADDR`, `leasehold.toml [profiles.dev]`, `the default`.
   */
  readonly source: string;
  readonly level: Precedence;
}

/** The record that `leasehold login` saves for an address. */
export type Login =
  | { readonly kind: 'token'; readonly token: Secret }
  | {
      readonly kind: 'session';
      readonly name: string;
      readonly token: Secret;
      readonly expiresAt: string;
      /** The key for a new session; null if the agent was not named explicitly. */
      readonly keyFile: string | null;
    };

export type OwnIdentity =
  | Login
  | { readonly kind: 'agent'; readonly name: string; readonly keyFile: string }
  | { readonly kind: 'anonymous' };

/** The name as a title: `agent NAME` or `operator NAME`. The flag is the same text after two hyphens. */
export function titleOf(name: string): string {
  return name.startsWith(OPERATOR_PREFIX) ? `operator ${name.slice(OPERATOR_PREFIX.length)}` : `agent ${name}`;
}

const SESSION_PREFIX = 'lhs_';

/** Whether the identity may be the administrator. A session token always belongs to an agent or an operator. */
export function mayBeAdministrator(identity: OwnIdentity): boolean {
  return identity.kind === 'token' && !identity.token.reveal().startsWith(SESSION_PREFIX);
}

export interface OwnServer {
  readonly dataDir: string;
  readonly address: string;
  readonly challengeServer: ChallengeServer;
}

export interface Settings {
  readonly address: Setting<string>;
  readonly identity: Setting<OwnIdentity>;
  readonly dataDir: Setting<string>;
  /**
   * Set when the address, the token or the trust in the address comes from the data directory. The server must then
   * prove itself.
   */
  readonly ownServer: OwnServer | null;
  /** PEM file of the trusted certificate authorities; null for the system's own. */
  readonly caFile: Setting<string> | null;
  readonly format: Setting<Format>;
  readonly timeoutSeconds: Setting<number>;
  readonly allowsInsecureHttp: boolean;
  readonly skippedFile: SkippedFile | null;
  readonly profile: Setting<string> | null;
  readonly runs: ReadonlyMap<string, Setting<RunMapping>>;
}

const DEFAULT_ADDRESS = 'http://127.0.0.1:7700';
const DEFAULT_TIMEOUT_SECONDS = 30;
const SWITCHES = { 'insecure-http': CLIENT_FLAGS['insecure-http'] } as const;

/** @throws UsageError */
export async function resolveSettings(flag: FlagReader, terminal: Terminal): Promise<Settings> {
  const warn = (line: string): void => printNotice(terminal, `WARNING  ${line}`);
  const { file: project, skipped: skippedFile } = await readProjectFile(terminal);
  if (skippedFile !== null) warn(`${skippedFile.path} is not read: it ${skippedFile.reason}.`);
  const files = [project, await readUserFile(terminal)].filter((file) => file !== null);
  const choose = (name: keyof typeof CLIENT_FLAGS, others: readonly Source[]): Setting<string> | null => {
    const { variable = '' } = CLIENT_FLAGS[name];
    return firstOf([
      [flag(name), `--${name}`, 'flag'],
      [readVariable(terminal, variable), variable, 'environment'],
      ...others,
    ]);
  };
  const inFiles = files.map(({ profile, displayPath, kind }): Source => [profile, `${displayPath}, profile`, kind]);
  const profile = choose('profile', inFiles);
  if (profile !== null && !files.some(({ profiles }) => profiles.has(profile.value)))
    throw new UsageError(`${profile.source}: no settings file contains the profile ${JSON.stringify(profile.value)}`);
  const layers = files.flatMap((file) => layersOf(file, profile?.value ?? null));
  const inLayers = (field: keyof FileSettings): Source[] =>
    layers.map(({ settings, source, level }) => [settings[field], source, level]);
  const dataDirs: Source[] = [
    ...inLayers('data_dir'),
    [join(homeOf(terminal), '.leasehold'), 'the default', 'default'],
  ];
  const dataDir = convert(choose('data-dir', dataDirs), (text) => resolve(terminal.workingDirectory, text));
  const own = readPublishedAddress(dataDir.value);
  const addresses: Source[] = [
    ...inLayers('address'),
    [own, `daemon.address in ${dataDir.value}`, 'data directory'],
    [DEFAULT_ADDRESS, 'the default', 'default'],
  ];
  const address = convert(choose('address', addresses), toAddress);
  const formats: Source[] = [...inLayers('output'), ['table', 'the default', 'default']];
  const timeouts: Source[] = [...inLayers('timeout'), [DEFAULT_TIMEOUT_SECONDS, 'the default', 'default']];
  // A layer that sets another address is ignored, because its ca_file is meant for that address.
  const caFiles = layers
    .filter(({ settings }) => !isForAnotherAddress(settings, address.value))
    .map(({ settings, source, level }): Source => [settings.ca_file, `${source}, ca_file`, level]);
  const caFile = choose('ca-file', caFiles);
  const switches = new Map(flag('insecure-http') === null ? [] : [['insecure-http', ['true']]]);
  const { 'insecure-http': allowsInsecureHttp } = readFlags(SWITCHES, switches, terminal.environment);
  const identity = findIdentity({
    flag,
    user: terminal,
    layers,
    address,
    dataDir: dataDir.value,
    publishedAddress: own,
    warn,
  });
  return {
    address,
    dataDir,
    caFile: caFile === null ? null : { ...caFile, value: resolve(terminal.workingDirectory, caFile.value) },
    identity,
    ownServer: findOwnServer(address, identity, dataDir.value, own, terminal),
    format: convert(choose('output', formats), toFormat),
    timeoutSeconds: convert(choose('timeout', timeouts), toSeconds),
    allowsInsecureHttp,
    skippedFile,
    profile,
    runs: runsOf(files),
  };
}

type Source = readonly [value: unknown, source: string, level: Precedence];

function firstOf(sources: readonly Source[]): Setting<string> | null {
  const found = sources.find(([value]) => value !== null && value !== undefined);
  return found === undefined ? null : { value: String(found[0]), source: found[1], level: found[2] };
}

/**
 * WHY equal addresses are not sufficient: an explicitly given address may be another server behind a forwarded port.
 */
function findOwnServer(
  address: Setting<string>,
  identity: Setting<unknown>,
  dataDir: string,
  own: string | null,
  { challengeServer }: Terminal,
): OwnServer | null {
  const isTrustedByDataDir = address.level === 'project file' && address.value === own;
  const comesFromDataDir =
    address.level === 'data directory' || identity.level === 'data directory' || isTrustedByDataDir;
  return own !== null && comesFromDataDir ? { dataDir, address: own, challengeServer } : null;
}

/** The project file takes precedence over the user file. */
function runsOf(files: readonly SettingsFile[]): Settings['runs'] {
  const runs = new Map<string, Setting<RunMapping>>();
  for (const { runs: own, displayPath, kind } of files.toReversed()) {
    for (const [name, value] of own) runs.set(name, { value, source: `${displayPath} [run.${name}]`, level: kind });
  }
  return runs;
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

function convert<T>(setting: Setting<string> | null, to: (text: string, source: string) => T): Setting<T> {
  if (setting === null) throw new Error('every setting has a default');
  return { ...setting, value: to(setting.value, setting.source) };
}

/** Excludes characters that terminals and shells interpret. */
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
