/**
 * Finds the identity for requests. INVARIANT: no token or signature is sent to an address that only a project file
 * sets, unless it is meant for that address. The file may come from a repository of another author, and a signature is
 * not bound to an address.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { isLoopbackHost } from '../../core/ip-network.ts';
import { OPERATOR_PREFIX, type PrincipalName, parseAgentName, parseOperatorName } from '../../core/names.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteWord } from '../../platform/installation.ts';
import { childPath } from '../../platform/paths.ts';
import { checkPrivateFile, ensurePrivateDir, writePrivateFile } from '../../platform/private-files.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import {
  type FlagReader,
  homeOf,
  isForAnotherAddress,
  keyFileIn,
  type Layer,
  readAdminToken,
  readVariable,
  type UserContext,
  userFilePath,
} from './files.ts';
import type { Login, OwnIdentity, Precedence, Setting } from './settings.ts';

interface Search {
  readonly flag: FlagReader;
  readonly user: UserContext;
  readonly layers: readonly Layer[];
  readonly address: Setting<string>;
  readonly dataDir: string;
  /** The content of the data directory's address file. */
  readonly publishedAddress: string | null;
  readonly warn: (line: string) => void;
}

/** @throws UsageError */
export function findIdentity(search: Search): Setting<OwnIdentity> {
  const { user, address } = search;
  const login = readLogin(user, address.value);
  const trust = addressTrust(search, login);
  const setting = trust === 'for its login' ? explicitIdentity(search, login) : configuredIdentity(search);
  if (trust === 'fully') assertKeyIsOfAgent(search, setting);
  if (setting !== null) return { ...setting, value: withLogin(setting.value, login) };
  // WHY even an expired session: the server's clock decides, and another identity must not be used silently.
  if (login !== null) return { value: login, source: 'leasehold login', level: 'login' };
  const token = isOwnServer(search) ? readAdminToken(search.dataDir) : null;
  if (token !== null) {
    return { value: { kind: 'token', token }, source: `daemon.token in ${search.dataDir}`, level: 'data directory' };
  }
  return { value: { kind: 'anonymous' }, source: 'no source', level: 'default' };
}

/** A key without a name is an error, not ignored. @throws UsageError */
function assertKeyIsOfAgent({ flag, user }: Search, setting: Setting<OwnIdentity> | null): void {
  if (setting?.value.kind === 'agent') return;
  const name = flag('key-file') !== null ? '--key-file' : 'LEASEHOLD_KEY_FILE';
  const isGiven = flag('key-file') !== null || (setting === null && readVariable(user, 'LEASEHOLD_KEY_FILE') !== null);
  if (isGiven) throw new UsageError(`${name} is given without a name`, 'Add --agent NAME or --operator NAME.');
}

/** The identity with the highest precedence. At one level, a token and an agent exclude each other. */
function configuredIdentity(search: Search): Setting<OwnIdentity> | null {
  const { address, layers } = search;
  const setting = fromFlags(search) ?? fromEnvironment(search);
  if (setting !== null) return setting;
  for (const { settings, source, level } of layers) {
    // An identity next to another address in the user file is meant for that address.
    const isElsewhere = isForAnotherAddress(settings, address.value);
    if (address.level === 'project file' && level === 'user file' && isElsewhere) continue;
    const found = choose(search, level, [
      ['tokenFile', settings.token_file, `${source}, token_file`],
      ['agent', settings.agent, `${source}, agent`],
    ]);
    if (found !== null) return found;
  }
  return null;
}

function fromFlags(search: Search): Setting<OwnIdentity> | null {
  const { flag } = search;
  return choose(search, 'flag', [
    ['tokenFile', flag('token-file'), '--token-file'],
    ['agent', flag('agent'), '--agent'],
    ['operator', flag('operator'), '--operator'],
  ]);
}

function fromEnvironment(search: Search): Setting<OwnIdentity> | null {
  const variable = (kind: Given[0], name: string): Given => [kind, readVariable(search.user, name), name];
  return choose(search, 'environment', [
    variable('token', 'LEASEHOLD_TOKEN'),
    variable('tokenFile', 'LEASEHOLD_TOKEN_FILE'),
    variable('agent', 'LEASEHOLD_AGENT'),
    variable('operator', 'LEASEHOLD_OPERATOR'),
  ]);
}

/** The identity given by flags. An identity in the environment is an error, and is not ignored. @throws UsageError */
function explicitIdentity(search: Search, login: Login | null): Setting<OwnIdentity> | null {
  const setting = fromFlags(search);
  const before = setting === null ? fromEnvironment(search) : null;
  if (before === null || isOf(login, before.value)) return setting;
  const { value, source } = search.address;
  throw new UsageError(
    `${before.source} would be sent to ${value}, which ${source} sets and where you are logged in with another identity`,
    `Unset it to use that login, or give --address ${quoteWord(value)}.`,
  );
}

type Given = readonly [
  kind: 'token' | 'tokenFile' | 'agent' | 'operator',
  text: string | null | undefined,
  source: string,
];

function choose(search: Search, level: Precedence, all: readonly Given[]): Setting<OwnIdentity> | null {
  const [given, other] = all.filter(([, text]) => text !== null && text !== undefined);
  if (given === undefined) return null;
  const [kind, text, source] = given;
  if (other !== undefined) throw new UsageError(`${source} and ${other[2]} are both set: use only one`);
  if (kind === 'operator') {
    return { value: toAgent(search, parseOperatorName(text ?? '', source)), source, level };
  }
  // WHY no operator in a file: it may come from a repository, whose author must not choose an operator's identity.
  if (kind === 'agent') return { value: toAgent(search, parseAgentName(text ?? '', source)), source, level };
  const token = kind === 'token' ? new Secret(text ?? '') : readToken(search, text ?? '', source);
  return { value: { kind: 'token', token }, source, level };
}

function readToken({ user, warn }: Search, file: string, source: string): Secret {
  const path = resolve(user.workingDirectory, file);
  let text: string;
  try {
    const found = statSync(path);
    // Group access is allowed: orchestrators mount secrets that way.
    if (found.isFile() && (found.mode & 0o007) !== 0)
      warn(`every user can read ${path}. To fix this: chmod o= ${quoteWord(path)}`);
    text = readFileSync(path, 'latin1').trim();
  } catch {
    throw new UsageError(`${source}: the file cannot be read`);
  }
  if (!/^[\x21-\x7e]{16,512}$/.test(text))
    throw new UsageError(`${source}: the file does not contain a Leasehold token (lha_… or lhs_…)`);
  return new Secret(text);
}

/** Finds the key in the file that a setting names, in the user's directory, or in the data directory. */
function toAgent(search: Search, name: PrincipalName): OwnIdentity {
  const { flag, user, layers, dataDir } = search;
  const given = flag('key-file') ?? readVariable(user, 'LEASEHOLD_KEY_FILE');
  if (given !== null) return { kind: 'agent', name, keyFile: resolve(user.workingDirectory, given) };
  const layer = layers.find(({ settings }) => settings.key_file !== undefined);
  const inFile = layer?.settings.key_file;
  if (inFile !== undefined) {
    // A repository can contain a named pipe, and reading it would block.
    if (statSync(inFile, { throwIfNoEntry: false })?.isFile() === false)
      throw new UsageError(`${layer?.source}, key_file: must be a file`);
    return { kind: 'agent', name, keyFile: inFile };
  }
  const usual = userKeyFile(user, name);
  const own = keyFileIn(dataDir, name);
  return { kind: 'agent', name, keyFile: !existsSync(usual) && existsSync(own) ? own : usual };
}

export function userKeyFile(user: UserContext, name: string): string {
  const isOperator = name.startsWith(OPERATOR_PREFIX);
  const [directory, file] = isOperator ? ['operators', name.slice(OPERATOR_PREFIX.length)] : ['agents', name];
  return childPath(join(dirname(userFilePath(user)), directory), `${file}.pem`);
}

function withLogin(identity: OwnIdentity, login: Login | null): OwnIdentity {
  if (identity.kind !== 'agent' || !isOf(login, identity)) return identity;
  return Date.parse(login.expiresAt) > Date.now() ? { ...login, keyFile: identity.keyFile } : identity;
}

function isOf(login: Login | null, identity: OwnIdentity): login is Login & { readonly kind: 'session' } {
  return identity.kind === 'agent' && login?.kind === 'session' && login.name === identity.name;
}

/**
 * Whether the address belongs to the data directory's server, or is the same with the name `localhost`. WHY not two
 * loopback addresses, or another port: another user may listen there.
 */
function isOwnServer({ address, publishedAddress }: Search): boolean {
  if (address.value === publishedAddress) return true;
  const [a, b] = [URL.parse(address.value), URL.parse(publishedAddress ?? '')];
  if (a === null || b === null || !isLoopbackHost(a.hostname) || !isLoopbackHost(b.hostname)) return false;
  return [a.hostname, b.hostname].includes('localhost') && a.protocol === b.protocol && a.port === b.port;
}

/**
 * The identities that may be sent to the address: any identity, or only its own login. @throws UsageError for an
 * untrusted address of a project file
 */
function addressTrust(
  { address, publishedAddress, layers, user }: Search,
  login: Login | null,
): 'fully' | 'for its login' {
  if (address.level !== 'project file' || address.value === publishedAddress) return 'fully';
  const trusted = layers.flatMap(({ settings, level }) =>
    level === 'user file' ? (settings.trusted_addresses ?? []) : [],
  );
  if (trusted.some((each) => each.replace(/\/+$/, '') === address.value)) return 'fully';
  if (login !== null) return 'for its login';
  throw new UsageError(
    `${address.source} sets the address to ${address.value}, which you have not trusted yet; its owner would receive your credentials`,
    `To trust it: leasehold login --address ${quoteWord(address.value)}, or add it to trusted_addresses in ${userFilePath(user)}`,
  );
}

interface SavedLogin {
  readonly token: string;
  readonly agent?: string;
  readonly expires_at?: string;
}

export function loginsPath(user: UserContext): string {
  const directory = user.environment['XDG_STATE_HOME'] || join(homeOf(user), '.local', 'state');
  return join(directory, 'leasehold', 'logins.json');
}

/**
 * Returns null without a login. The session may have expired. @throws StartupError when the file belongs to another
 * user or is a link
 */
export function readLogin(user: UserContext, address: string): Login | null {
  const saved = readAll(user).get(address);
  if (saved === undefined || typeof saved.token !== 'string') return null;
  const token = new Secret(saved.token);
  if (saved.agent === undefined || saved.expires_at === undefined) return { kind: 'token', token };
  return { kind: 'session', name: saved.agent, token, expiresAt: saved.expires_at, keyFile: null };
}

/** Saves the login; null deletes it. Returns whether one existed before. */
export function writeLogin(user: UserContext, address: string, login: Login | null): boolean {
  const all = readAll(user);
  const existed = all.delete(address);
  if (login !== null) {
    const token = login.token.reveal();
    all.set(address, login.kind === 'token' ? { token } : { token, agent: login.name, expires_at: login.expiresAt });
  }
  const path = loginsPath(user);
  ensurePrivateDir(dirname(path));
  writePrivateFile(path, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
  return existed;
}

function readAll(user: UserContext): Map<string, SavedLogin> {
  const path = loginsPath(user);
  if (!checkPrivateFile(path)) return new Map();
  try {
    const all: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof all === 'object' && all !== null) return new Map(Object.entries(all));
  } catch {
    // An invalid file contains no logins.
  }
  return new Map();
}
