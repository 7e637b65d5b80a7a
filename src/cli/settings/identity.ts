/**
 * As whom the service is asked. INVARIANT: neither a token nor a signature goes to an address that only a project's file names, unless
 * it is meant for that address: such a file may come with a repository that somebody else wrote, and a signature says nothing of where
 * it is meant to go.
 */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { isLoopback } from '../../client/address.ts';
import { ApiError } from '../../core/errors.ts';
import { parseAgentName } from '../../core/names.ts';
import { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteWord } from '../output/variables.ts';
import { type UserDirs, userFilePath } from './files.ts';
import { keyFileIn, readAdminToken } from './local.ts';
import { type Login, readLogin } from './logins.ts';
import type { Identity, Setting } from './settings.ts';
import { type FlagReader, type Layer, readVariable } from './sources.ts';

interface Search {
  readonly flag: FlagReader;
  readonly places: UserDirs;
  readonly layers: readonly Layer[];
  readonly address: Setting<string>;
  readonly dataDir: string;
  /** What the data directory says of its own service. */
  readonly serviceAddress: string | null;
  /** Tells the user what is not refused, but should not be. */
  readonly warn: (line: string) => void;
}

/** @throws UsageError */
export function findIdentity(search: Search): Setting<Identity> {
  const { places, address } = search;
  const login = readLogin(places, address.value);
  const trust = addressTrust(search, login);
  const said = trust === 'for its login' ? explicitIdentity(search, login) : wanted(search);
  if (trust === 'fully') assertKeyIsOfAgent(search, said);
  if (said !== null) return { ...said, value: withLogin(said.value, login) };
  if (login !== null) return { value: fromLogin(login), source: 'leasehold login', level: 'login' };
  const token = isOwnService(search) ? readAdminToken(search.dataDir) : null;
  if (token !== null) {
    return { value: { kind: 'token', token }, source: `daemon.token in ${search.dataDir}`, level: 'data directory' };
  }
  return { value: { kind: 'nobody' }, source: 'nothing that was found', level: 'default' };
}

/** A key says nothing without the agent's name, and must not be passed over. @throws UsageError */
function assertKeyIsOfAgent({ flag, places }: Search, said: Setting<Identity> | null): void {
  if (said?.value.kind === 'agent') return;
  const name = flag('key-file') !== null ? '--key-file' : 'LEASEHOLD_KEY_FILE';
  const isGiven = flag('key-file') !== null || (said === null && readVariable(places, 'LEASEHOLD_KEY_FILE') !== null);
  if (isGiven)
    throw new UsageError(`${name} is the key of an agent, and no agent is named`, 'Give --agent NAME with it.');
}

/** What was said of it, from the strongest; at one level a token and an agent exclude each other. */
function wanted(search: Search): Setting<Identity> | null {
  const { address, layers } = search;
  const said = fromFlags(search) ?? fromEnvironment(search);
  if (said !== null) return said;
  for (const { settings, by, level } of layers) {
    // What stands beside another address in the user's file is meant for that one.
    const isElsewhere = settings.address !== undefined && settings.address.replace(/\/+$/, '') !== address.value;
    if (address.level === 'project file' && level === 'user file' && isElsewhere) continue;
    const given = { token: null, tokenFile: settings.token_file ?? null, agent: settings.agent ?? null };
    const found = choose(search, given, ['', `${by}, token_file`, `${by}, agent`], level);
    if (found !== null) return found;
  }
  return null;
}

function fromFlags(search: Search): Setting<Identity> | null {
  const { flag } = search;
  const given = { token: null, tokenFile: flag('token-file'), agent: flag('agent') };
  return choose(search, given, ['', '--token-file', '--agent'], 'flag');
}

function fromEnvironment(search: Search): Setting<Identity> | null {
  const names = ['LEASEHOLD_TOKEN', 'LEASEHOLD_TOKEN_FILE', 'LEASEHOLD_AGENT'] as const;
  const [token = null, tokenFile = null, agent = null] = names.map((name) => readVariable(search.places, name));
  return choose(search, { token, tokenFile, agent }, names, 'environment');
}

/** What was said with the address before one's eyes. @throws UsageError for what was said before, and would be passed over */
function explicitIdentity(search: Search, login: Login | null): Setting<Identity> | null {
  const said = fromFlags(search);
  const before = said === null ? fromEnvironment(search) : null;
  if (before === null || isOf(login, before.value)) return said;
  const { value, source } = search.address;
  throw new UsageError(
    `${before.source} would go to ${value}, which ${source} names, and where you have logged in otherwise`,
    `Unset it to be asked as that login, or give --address ${quoteWord(value)}.`,
  );
}

function choose(
  search: Search,
  given: { readonly token: string | null; readonly tokenFile: string | null; readonly agent: string | null },
  names: readonly [string, string, string],
  level: Setting<Identity>['level'],
): Setting<Identity> | null {
  const { token, tokenFile, agent } = given;
  const said = [token, tokenFile, agent].flatMap((value, at) => (value === null ? [] : [names[at] ?? '']));
  const [by, other] = said;
  if (by === undefined) return null;
  if (other !== undefined)
    throw new UsageError(`${by} and ${other} are both given, and say different things: give one`);
  if (token !== null) return { value: { kind: 'token', token: new Secret(token) }, source: by, level };
  if (tokenFile !== null)
    return { value: { kind: 'token', token: readToken(search, tokenFile, by) }, source: by, level };
  return { value: toAgent(search, agent ?? '', by), source: by, level };
}

function readToken({ places, warn }: Search, file: string, by: string): Secret {
  const path = resolve(places.folder, file);
  let text: string;
  try {
    const found = statSync(path);
    // A group may be meant to read it, as with the secrets of an orchestrator.
    if (found.isFile() && (found.mode & 0o007) !== 0)
      warn(`${path} can be read by every user: chmod o= ${quoteWord(path)}`);
    text = readFileSync(path, 'latin1').trim();
  } catch {
    throw new UsageError(`${by}: the file cannot be read`);
  }
  if (!/^[\x21-\x7e]{16,512}$/.test(text))
    throw new UsageError(`${by}: the file does not hold a Leasehold token (lha_… or lhs_…)`);
  return new Secret(text);
}

/** With a key of its own file, of the data directory, or of the user's. */
function toAgent(search: Search, text: string, by: string): Identity {
  const name = parseName(text, by);
  const { flag, places, layers, dataDir } = search;
  const given = flag('key-file') ?? readVariable(places, 'LEASEHOLD_KEY_FILE');
  if (given !== null) return { kind: 'agent', name, keyFile: resolve(places.folder, given) };
  const layer = layers.find(({ settings }) => settings.key_file !== undefined);
  const inFile = layer?.settings.key_file;
  if (inFile !== undefined) {
    // What a repository brings may be a pipe, which would be waited for.
    if (statSync(inFile, { throwIfNoEntry: false })?.isFile() === false)
      throw new UsageError(`${layer?.by}, key_file: must be a file`);
    return { kind: 'agent', name, keyFile: inFile };
  }
  const usual = userKeyFile(places, name);
  const own = keyFileIn(dataDir, name);
  return { kind: 'agent', name, keyFile: !existsSync(usual) && existsSync(own) ? own : usual };
}

function parseName(text: string, by: string): string {
  try {
    return parseAgentName(text, by);
  } catch (error) {
    if (error instanceof ApiError) throw new UsageError(error.message);
    throw error;
  }
}

/** Where an agent's key lies that was made with `leasehold agent add`. */
export function userKeyFile(places: UserDirs, agent: string): string {
  return join(dirname(userFilePath(places)), 'agents', `${agent}.pem`);
}

/** A session that is open already is used. */
function withLogin(identity: Identity, login: Login | null): Identity {
  if (identity.kind !== 'agent' || !isOf(login, identity) || hasEnded(login)) return identity;
  return {
    kind: 'session',
    name: login.agent,
    token: login.token,
    expiresAt: login.expiresAt,
    keyFile: identity.keyFile,
  };
}

function isOf(login: Login | null, identity: Identity): login is Login & { readonly kind: 'session' } {
  return identity.kind === 'agent' && login?.kind === 'session' && login.agent === identity.name;
}

function hasEnded({ expiresAt }: { readonly expiresAt: string }): boolean {
  return !(Date.parse(expiresAt) > Date.now());
}

/** WHY also one that seems to have ended: the service's clock decides, and nobody else is asked for instead. */
function fromLogin(login: Login): Identity {
  if (login.kind === 'token') return login;
  const { agent: name, token, expiresAt } = login;
  return { kind: 'session', name, token, expiresAt, keyFile: null };
}

/** Whether the data directory's token is meant for the address: its own service, however loopback is spelt. */
function isOwnService({ address, serviceAddress }: Search): boolean {
  return serviceAddress !== null && (address.value === serviceAddress || sameLoopback(address.value, serviceAddress));
}

/** A port that somebody forwarded, or took, is not the service's. */
function sameLoopback(one: string, other: string): boolean {
  const [a, b] = [URL.parse(one), URL.parse(other)];
  if (a === null || b === null || !isLoopback(a.hostname) || !isLoopback(b.hostname)) return false;
  return a.protocol === b.protocol && a.port === b.port;
}

/** What an address may get: everything, or what was left for it by `leasehold login`. @throws UsageError for one that only a project's file names */
function addressTrust(
  { address, serviceAddress, layers, places }: Search,
  login: Login | null,
): 'fully' | 'for its login' {
  if (address.level !== 'project file' || address.value === serviceAddress) return 'fully';
  const trusted = layers.flatMap(({ settings, level }) =>
    level === 'user file' ? (settings.trusted_addresses ?? []) : [],
  );
  if (trusted.some((each) => each.replace(/\/+$/, '') === address.value)) return 'fully';
  if (login !== null) return 'for its login';
  throw new UsageError(
    `${address.source} sends you to ${address.value}, where you have not been: whoever wrote that file would get what you send`,
    `If it is the right one: leasehold login --address ${quoteWord(address.value)}, or put it into trusted_addresses in ${userFilePath(places)}`,
  );
}
