/**
 * As whom the service is asked. INVARIANT: neither a token nor a signature goes to an address that only a project's file names: such a
 * file may come with a repository that somebody else wrote.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Fault } from '../../core/fault.ts';
import { parseAgentName } from '../../core/names.ts';
import { Secret } from '../../core/secret.ts';
import { Mistake } from '../mistake.ts';
import { quoteWord } from '../output/variables.ts';
import { type Places, userFilePath } from './files.ts';
import { keyFileIn, readAdminToken } from './local.ts';
import { type Login, readLogin } from './logins.ts';
import type { Identity, Said } from './settings.ts';
import { type FlagReader, type Layer, readVariable } from './sources.ts';

interface Search {
  readonly flag: FlagReader;
  readonly places: Places;
  readonly layers: readonly Layer[];
  readonly address: Said<string>;
  readonly dataDir: string;
  /** What the data directory says of its own service. */
  readonly serviceAddress: string | null;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** @throws Mistake */
export function findIdentity(search: Search): Said<Identity> {
  const { places, address } = search;
  const login = readLogin(places, address.value);
  assertTrusted(search, login);
  const said = wanted(search);
  assertKeyIsOfAgent(search, said);
  if (said !== null) return { ...said, value: withLogin(said.value, login) };
  if (login !== null) return { value: fromLogin(login), by: 'leasehold login', level: 'login' };
  const token = isOwnService(search) ? readAdminToken(search.dataDir) : null;
  if (token !== null) {
    return { value: { kind: 'token', token }, by: `daemon.token in ${search.dataDir}`, level: 'data directory' };
  }
  return { value: { kind: 'nobody' }, by: 'nothing that was found', level: 'default' };
}

/** A key says nothing without the agent's name, and must not be passed over. @throws Mistake */
function assertKeyIsOfAgent({ flag, places }: Search, said: Said<Identity> | null): void {
  if (said?.value.kind === 'agent') return;
  const name = flag('key-file') !== null ? '--key-file' : 'LEASEHOLD_KEY_FILE';
  const isGiven = flag('key-file') !== null || (said === null && readVariable(places, 'LEASEHOLD_KEY_FILE') !== null);
  if (isGiven) throw new Mistake(`${name} is the key of an agent, and no agent is named`, 'Give --agent NAME with it.');
}

/** What was said of it, from the strongest; at one level a token and an agent exclude each other. */
function wanted(search: Search): Said<Identity> | null {
  const { flag, places, layers } = search;
  const flags = { token: null, tokenFile: flag('token-file'), agent: flag('agent') };
  const fromFlags = choose(search, flags, ['', '--token-file', '--agent'], 'flag');
  if (fromFlags !== null) return fromFlags;
  const names = ['LEASEHOLD_TOKEN', 'LEASEHOLD_TOKEN_FILE', 'LEASEHOLD_AGENT'] as const;
  const [token, tokenFile, agent] = names.map((name) => readVariable(places, name));
  const fromEnvironment = choose(
    search,
    { token: token ?? null, tokenFile: tokenFile ?? null, agent: agent ?? null },
    names,
    'environment',
  );
  if (fromEnvironment !== null) return fromEnvironment;
  for (const { settings, by, level } of layers) {
    const given = { token: null, tokenFile: settings.token_file ?? null, agent: settings.agent ?? null };
    const found = choose(search, given, ['', `${by}, token_file`, `${by}, agent`], level);
    if (found !== null) return found;
  }
  return null;
}

function choose(
  search: Search,
  given: { readonly token: string | null; readonly tokenFile: string | null; readonly agent: string | null },
  names: readonly [string, string, string],
  level: Said<Identity>['level'],
): Said<Identity> | null {
  const { token, tokenFile, agent } = given;
  const said = [token, tokenFile, agent].flatMap((value, at) => (value === null ? [] : [names[at] ?? '']));
  const [by, other] = said;
  if (by === undefined) return null;
  if (other !== undefined) throw new Mistake(`${by} and ${other} are both given, and say different things: give one`);
  if (token !== null) return { value: { kind: 'token', token: new Secret(token) }, by, level };
  if (tokenFile !== null) return { value: { kind: 'token', token: readToken(search, tokenFile, by) }, by, level };
  return { value: toAgent(search, agent ?? '', by), by, level };
}

function readToken({ places }: Search, file: string, by: string): Secret {
  let text: string;
  try {
    text = readFileSync(resolve(places.folder, file), 'latin1').trim();
  } catch {
    throw new Mistake(`${by}: the file cannot be read`);
  }
  if (!/^[\x21-\x7e]{16,512}$/.test(text)) throw new Mistake(`${by}: the file must hold one token, and nothing else`);
  return new Secret(text);
}

/** With a key of its own file, of the data directory, or of the user's. */
function toAgent(search: Search, text: string, by: string): Identity {
  const name = parseName(text, by);
  const { flag, places, layers, dataDir } = search;
  const given = flag('key-file') ?? readVariable(places, 'LEASEHOLD_KEY_FILE');
  if (given !== null) return { kind: 'agent', name, keyFile: resolve(places.folder, given) };
  const inFile = layers.find(({ settings }) => settings.key_file !== undefined)?.settings.key_file;
  if (inFile !== undefined) return { kind: 'agent', name, keyFile: inFile };
  const usual = userKeyFile(places, name);
  const own = keyFileIn(dataDir, name);
  return { kind: 'agent', name, keyFile: !existsSync(usual) && existsSync(own) ? own : usual };
}

function parseName(text: string, by: string): string {
  try {
    return parseAgentName(text, by);
  } catch (error) {
    if (error instanceof Fault) throw new Mistake(error.message);
    throw error;
  }
}

/** Where an agent's key lies that was made with `leasehold agent add`. */
export function userKeyFile(places: Places, agent: string): string {
  return join(dirname(userFilePath(places)), 'agents', `${agent}.pem`);
}

/** A session that is open already is used. */
function withLogin(identity: Identity, login: Login | null): Identity {
  const isItsOwn = identity.kind === 'agent' && login?.kind === 'session' && login.agent === identity.name;
  if (!isItsOwn || hasEnded(login)) return identity;
  return {
    kind: 'session',
    name: login.agent,
    token: login.token,
    expiresAt: login.expiresAt,
    keyFile: identity.keyFile,
  };
}

function hasEnded({ expiresAt }: { readonly expiresAt: string }): boolean {
  return !(Date.parse(expiresAt) > Date.now());
}

function fromLogin(login: Login): Identity {
  if (login.kind === 'token') return login;
  const { agent: name, token, expiresAt } = login;
  if (hasEnded(login)) return { kind: 'ended', name, expiresAt };
  return { kind: 'session', name, token, expiresAt, keyFile: null };
}

/** Whether the data directory's token is meant for the address: its own service, however loopback is spelt. */
function isOwnService({ address, serviceAddress }: Search): boolean {
  if (serviceAddress === null) return address.level === 'default';
  return address.value === serviceAddress || sameLoopback(address.value, serviceAddress);
}

/** A port that somebody forwarded, or took, is not the service's. */
function sameLoopback(one: string, other: string): boolean {
  const [a, b] = [URL.parse(one), URL.parse(other)];
  const isLoopback = (url: URL | null): boolean => url !== null && LOOPBACK.test(url.hostname);
  return isLoopback(a) && isLoopback(b) && a?.protocol === b?.protocol && a?.port === b?.port;
}

/** @throws Mistake for an address that nobody but a project's file names */
function assertTrusted({ address, serviceAddress, layers, places }: Search, login: Login | null): void {
  if (address.level !== 'project file' || address.value === serviceAddress || login !== null) return;
  const trusted = layers.flatMap(({ settings, level }) =>
    level === 'user file' ? (settings.trusted_addresses ?? []) : [],
  );
  if (trusted.some((each) => each.replace(/\/+$/, '') === address.value)) return;
  throw new Mistake(
    `${address.by} sends you to ${address.value}, where you have not been: whoever wrote that file would get what you send`,
    `If it is the right one: leasehold login --address ${quoteWord(address.value)}, or put it into trusted_addresses in ${userFilePath(places)}`,
  );
}
