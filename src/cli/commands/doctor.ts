/**
 * `leasehold doctor`: prints the settings in effect and their sources, and checks whether they work. Finds settings
 * that keep an SDK from working with a base URL of this vault. An SDK reads none of Leasehold’s settings. It finds the
 * address, the certificate authority and the proxy in other variables.
 */
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { connect, rootCertificates } from 'node:tls';
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { isLoopbackHost } from '../../core/ip-network.ts';
import { pathViolation } from '../../core/path.ts';
import { type Environment, toggle } from '../../flags/flag.ts';
import { readVersion } from '../../platform/installation.ts';
import { isPrivate } from '../../platform/private-files.ts';
import { SERVICES } from '../../vault/catalogue/catalogue.ts';
import type { ServiceDefinition } from '../../vault/catalogue/definition.ts';
import { type Command, defineCommand, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { withVerificationProgress } from '../progress.ts';
import { loginsPath } from '../settings/own-identity.ts';
import { titleOf } from '../settings/settings.ts';
import type { Terminal } from '../terminal.ts';
import { identify } from './sessions.ts';

const MAX_CLOCK_DIFFERENCE_MS = 30_000;

type CheckResult = {
  readonly check: string;
  readonly result: 'ok' | 'warning' | 'wrong';
  readonly found: string;
};

const ok = (check: string, found: string): CheckResult => ({ check, result: 'ok', found });
const warning = (check: string, found: string): CheckResult => ({ check, result: 'warning', found });
const wrong = (check: string, found: string): CheckResult => ({ check, result: 'wrong', found });

const doctor = defineCommand({
  name: 'doctor',
  about: [
    'The checks named after SDKs and their variables find settings that keep an SDK from working with a base URL of the vault: a certificate that it does not trust, a proxy variable that captures the address, or a base-URL variable that points elsewhere.',
    'With --state, the administrator also has the server verify the audit log and check all state against it: each agent, policy, credential, set of targets and session against the newest entry about it. With --values it also decrypts every value. Each invalid row is listed with its problem: "altered" has an invalid MAC, "not as recorded" was replayed or rolled back, "missing" was removed outside the server, "value unreadable" does not authenticate.',
    'The exit code is 2 if a check fails; warnings do not change it.',
  ],
  flags: {
    state: toggle('check all state of the vault against the audit log'),
    values: toggle('also decrypt every value; implies --state'),
  },
  async run(invocation, { state, values }) {
    const findings = [
      ...settingsOf(invocation),
      ...filesOf(invocation),
      ...(await serverOf(invocation)),
      ...(state || values ? await stateOf(invocation, values) : []),
      ...(await checkSdks(invocation)),
    ];
    await invocation.output.records(findings, ['check', 'result', 'found'], null);
    return findings.some(({ result }) => result === 'wrong') ? EXIT.ERROR : EXIT.OK;
  },
});

async function stateOf(invocation: Invocation, values: boolean): Promise<CheckResult[]> {
  try {
    return await checkState(invocation.connect(), invocation, values);
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return [wrong('state', `${error.message} (${error.code})`)];
  }
}

function settingsOf({ settings }: Invocation): CheckResult[] {
  const { address, identity, dataDir, caFile, format, timeoutSeconds, profile } = settings;
  const who = identity.value;
  const name = who.kind === 'agent' || who.kind === 'session' ? titleOf(who.name) : who.kind;
  return [
    ok('version', `leasehold ${readVersion()}, Node ${process.versions.node}`),
    ok('address', `${address.value}, from ${address.source}`),
    who.kind === 'anonymous'
      ? warning('identity', 'none: no token or agent found')
      : ok('identity', `${name}, from ${identity.source}`),
    ok('data directory', `${dataDir.value}, from ${dataDir.source}`),
    ...(caFile === null ? [] : [ok('certificate authority', `${caFile.value}, from ${caFile.source}`)]),
    ok('output', `${format.value}, from ${format.source}`),
    ok('timeout', `${timeoutSeconds.value} s, from ${timeoutSeconds.source}`),
    ...(profile === null ? [] : [ok('profile', `${profile.value}, from ${profile.source}`)]),
  ];
}

function filesOf({ settings, terminal }: Invocation): CheckResult[] {
  const who = settings.identity.value;
  const keyFile =
    who.kind === 'agent'
      ? [checkMode('key file', who.keyFile) ?? wrong('key file', `${who.keyFile} does not exist`)]
      : [];
  const logins = checkMode('logins', loginsPath(terminal));
  return logins === null ? keyFile : [...keyFile, logins];
}

function checkMode(check: string, file: string): CheckResult | null {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return null;
  if (isPrivate(found)) return ok(check, file);
  return warning(check, `${file} is accessible to other users: run chmod 600 on it`);
}

async function serverOf(invocation: Invocation): Promise<CheckResult[]> {
  const { settings, signal } = invocation;
  const findings: CheckResult[] = [];
  const vault = invocation.connect(true);
  let check = 'server';
  try {
    const startedAt = performance.now();
    const { status } = await vault.health({ signal });
    findings.push(ok(check, `${status}, responded in ${Math.round(performance.now() - startedAt)} ms`));
    const difference = await vault.clockDifference({ signal });
    const isFar = Math.abs(difference) > MAX_CLOCK_DIFFERENCE_MS;
    if (isFar) findings.push(warning('clock', `differs from the server by ${Math.round(difference / 1000)} s`));
    else findings.push(ok('clock', 'agrees with the server'));
    if (settings.identity.value.kind === 'anonymous') return findings;
    check = 'login';
    const { name, expiresAt } = await identify(vault, signal);
    findings.push(ok(check, `${name}${expiresAt === null ? '' : `, session until ${expiresAt}`}`));
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    const why = error.code === 'AUTH_FAILED' ? 'the agent is not registered, or the key is not its key' : error.message;
    findings.push(wrong(check, `${why} (${error.code})`));
  }
  return findings;
}

/** Verifies the audit log too, because a row is valid only if it matches its newest entry. */
async function checkState({ audit }: Leasehold, invocation: Invocation, values: boolean): Promise<CheckResult[]> {
  const verifying = audit.verify({ state: true, values, signal: invocation.signal });
  const found = await withVerificationProgress(invocation, 'Checking', audit, verifying);
  const log = found.valid ? ok('log', `${found.entries} entries, chain intact`) : wrong('log', found.message);
  const { checked, problem_count, problems } = found.state ?? { checked: 0, problem_count: 0, problems: [] };
  if (problem_count === 0) return [log, ok('state', `${checked} rows, entries and values match the audit log`)];
  const shown = problems.map(({ subject, problem }) => wrong('state', `${subject}: ${problem}`));
  const others = problem_count - problems.length;
  return [log, ...shown, ...(others > 0 ? [wrong('state', `${others} more`)] : [])];
}

async function checkSdks({ settings, terminal, signal }: Invocation): Promise<CheckResult[]> {
  const address = URL.parse(settings.address.value);
  if (address === null || !/^https?:$/.test(address.protocol)) {
    const found = 'SDKs cannot connect to a Unix socket: let the server listen on HOST:PORT too';
    return [warning('SDK base URL', found)];
  }
  const { environment } = terminal;
  return [
    baseUrl(address),
    ...(await checkCertificate(address, terminal, signal)),
    ...checkProxies(address, environment),
    ...checkBaseUrls(address, environment),
  ];
}

function baseUrl(address: URL): CheckResult {
  if (address.protocol === 'http:' && !isLoopbackHost(address.hostname)) {
    return warning('SDK base URL', 'plain HTTP to another machine exposes the tokens of SDKs: use https://');
  }
  return ok('SDK base URL', `${address.origin}${address.pathname.replace(/\/+$/, '')}/use/PATH/-`);
}

function checkProxies(address: URL, environment: Environment): CheckResult[] {
  const scheme = address.protocol.slice(0, -1);
  const setOf = (names: readonly string[]) =>
    names.flatMap((name) => [name.toLowerCase(), name]).filter((name) => (environment[name] ?? '') !== '');
  const proxies = setOf([`${scheme.toUpperCase()}_PROXY`, 'ALL_PROXY']);
  if (proxies.length === 0) return [];
  // WHY all spellings: which one wins depends on the program.
  const exceptions = setOf(['NO_PROXY']);
  const isExcepted = exceptions.length > 0 && exceptions.every((name) => isExcluded(address, environment[name] ?? ''));
  const names = proxies.join(', ');
  if (isExcepted) return [ok('SDK proxy', `${names} set, and ${exceptions.join(', ')} excludes the vault`)];
  const host = withoutBrackets(address.hostname);
  return [
    warning(
      'SDK proxy',
      `programs may send requests for the vault to the proxy of ${names}: add ${host} to NO_PROXY and no_proxy`,
    ),
  ];
}

const withoutBrackets = (host: string): string => host.replaceAll(/[[\]]/g, '');

/**
 * Compares the forms that all programs read: `*`, a host or a domain, each with an optional port. WHY not networks such
 * as 10.0.0.0/8: several SDKs ignore them.
 */
function isExcluded(address: URL, exceptions: string): boolean {
  const host = withoutBrackets(address.hostname);
  const port = address.port || (address.protocol === 'https:' ? '443' : '80');
  return exceptions.split(/[\s,]+/).some((exception) => {
    if (exception === '*') return true;
    const [, name = '', ownPort = port] = /^(\[[^\]]*\]|.*?)(?::(\d{1,5}))?$/.exec(exception.toLowerCase()) ?? [];
    // An IPv6 address without brackets has colons and no port.
    const isAddress = withoutBrackets(exception.toLowerCase()) === host;
    const domain = withoutBrackets(name).replace(/^\*?\./, '');
    return isAddress || (ownPort === port && domain !== '' && (host === domain || host.endsWith(`.${domain}`)));
  });
}

function checkBaseUrls(address: URL, environment: Environment): CheckResult[] {
  return SERVICES.flatMap((service) =>
    service.variables.flatMap(({ name, holds, suffix = '' }) => {
      const text = environment[name] ?? '';
      return holds !== 'base-url' || text === '' ? [] : [check(address, environment, service, { name, suffix, text })];
    }),
  );
}

function check(
  address: URL,
  environment: Environment,
  { title, variables }: ServiceDefinition,
  { name, suffix, text }: { readonly name: string; readonly suffix: string; readonly text: string },
): CheckResult {
  const url = URL.parse(text);
  const prefix = `${address.pathname.replace(/\/+$/, '')}/use/`;
  if (url === null || !isSameServer(address, url) || !url.pathname.startsWith(prefix)) {
    return warning(name, `set to another address: SDKs of ${title} do not use this vault`);
  }
  const form = `${address.origin}${prefix}PATH/-${suffix}`;
  const [, path = '', end = null] = /^(.+?)\/-\d*(\/.*)?$/.exec(url.pathname.slice(prefix.length)) ?? [];
  const isComplete = trim(end ?? '') === trim(suffix) && url.search === '' && url.hash === '';
  if (!isComplete || pathViolation(path) !== null) return warning(name, `must have the form ${form}`);
  const keys = variables.filter(({ holds }) => holds === 'key').map((key) => key.name);
  if (keys.length > 0 && keys.every((key) => (environment[key] ?? '') === '')) {
    return warning(name, `uses ${path}, but ${keys.join(' or ')} is not set: give it a token of the vault`);
  }
  return ok(name, `uses ${path} of this vault`);
}

const trim = (path: string): string => path.replace(/\/+$/, '');

/** WHY not two different loopback addresses: another user may listen on the other one. */
function isSameServer(one: URL, other: URL): boolean {
  const isAlias = isLoopbackHost(one.hostname) && isLoopbackHost(other.hostname);
  const isSameHost =
    one.hostname === other.hostname || (isAlias && [one.hostname, other.hostname].includes('localhost'));
  return isSameHost && one.protocol === other.protocol && one.port === other.port;
}

const CHECK = 'SDK certificate';
const CONNECT_TIMEOUT_MS = 3000;
/** Codes for a missing private authority. Other codes are about the certificate, such as its host names. */
const UNKNOWN_AUTHORITY = /^(?:DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const CERTIFICATE_FAULT = /^(?:ERR_TLS_CERT|CERT_|HOSTNAME_|INVALID_(?:CA|PURPOSE))/;
const VARIABLES = [
  ['NODE_EXTRA_CA_CERTS', 'Node'],
  ['SSL_CERT_FILE', 'OpenSSL, Go, httpx of Python'],
  ['REQUESTS_CA_BUNDLE', 'requests of Python'],
] as const;

/** Reports nothing without TLS, or if the server cannot be reached, which another check reports. */
async function checkCertificate(
  address: URL,
  { environment, workingDirectory }: Pick<Terminal, 'environment' | 'workingDirectory'>,
  signal: AbortSignal,
): Promise<CheckResult[]> {
  if (address.protocol !== 'https:') return [];
  const code = await tryTls(address, rootCertificates, signal);
  if (code === null) return [ok(CHECK, 'signed by a public authority')];
  if (CERTIFICATE_FAULT.test(code)) return [rejected(code)];
  if (!UNKNOWN_AUTHORITY.test(code)) return [];
  const trusting: string[] = [];
  const missing: string[] = [];
  for (const [name, readers] of VARIABLES) {
    const pem = readPem(environment[name] ?? '', workingDirectory);
    const failure = pem === null ? code : await tryTls(address, [pem], signal);
    // The authority is known, and the certificate is still not valid.
    if (failure !== null && CERTIFICATE_FAULT.test(failure)) return [rejected(failure)];
    (failure === null ? trusting : missing).push(`${name} (${readers})`);
  }
  if (missing.length === 0) return [ok(CHECK, 'trusted by the authorities of the SDKs’ variables')];
  const start = trusting.length === 0 ? 'SDKs do not read --ca-file' : `trusted through ${trusting.join(', ')} only`;
  return [warning(CHECK, `${start}: set ${missing.join(', ')} to the file of the authority`)];
}

const rejected = (code: string): CheckResult => warning(CHECK, `SDKs reject the certificate (${code})`);

function readPem(file: string, workingDirectory: string): string | null {
  try {
    return file === '' ? null : readFileSync(resolve(workingDirectory, file), 'latin1');
  } catch {
    return null;
  }
}

/** Connects without a proxy. Resolves to null, or to the code of the error. */
function tryTls({ hostname, port }: URL, ca: readonly string[], signal: AbortSignal): Promise<string | null> {
  const host = withoutBrackets(hostname);
  const { promise, resolve: settle } = Promise.withResolvers<string | null>();
  try {
    const servername = /[a-z]/i.test(host) && !host.includes(':') ? { servername: host } : {};
    const socket = connect({ host, port: Number(port || 443), ca: [...ca], ...servername });
    const fail = (code: string): void => {
      settle(code);
      socket.destroy();
    };
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => fail('TIMEOUT'));
    socket.once('secureConnect', () => {
      settle(null);
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.name));
    signal.addEventListener('abort', () => fail('ABORTED'), { once: true });
  } catch {
    // The variable names a file that is not PEM.
    settle('INVALID_FILE');
  }
  return promise;
}

export const COMMANDS: readonly Command[] = [doctor];
