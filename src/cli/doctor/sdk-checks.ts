/**
 * Finds settings that keep an SDK from working with a base URL of this vault. An SDK reads none of Leasehold's
 * settings. It finds the address, the certificate authority and the proxy in other variables.
 */

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { connect, rootCertificates } from 'node:tls';
import { isLoopback } from '../../client/address.ts';
import { pathViolation } from '../../core/path.ts';
import { SERVICES } from '../../vault/catalogue/catalogue.ts';
import type { ServiceDefinition } from '../../vault/catalogue/definition.ts';
import type { Invocation } from '../command.ts';
import type { Terminal } from '../terminal.ts';

export type CheckResult = {
  readonly check: string;
  readonly result: 'ok' | 'warning' | 'wrong';
  readonly found: string;
};

export const ok = (check: string, found: string): CheckResult => ({ check, result: 'ok', found });
export const warning = (check: string, found: string): CheckResult => ({ check, result: 'warning', found });
export const wrong = (check: string, found: string): CheckResult => ({ check, result: 'wrong', found });

export async function checkSdks({ settings, terminal, signal }: Invocation): Promise<CheckResult[]> {
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
  if (address.protocol === 'http:' && !isLoopback(address.hostname)) {
    return warning('SDK base URL', 'plain HTTP to another machine exposes the tokens of SDKs: use https://');
  }
  return ok('SDK base URL', `${address.origin}${address.pathname.replace(/\/+$/, '')}/use/PATH/-`);
}

type Environment = Readonly<Record<string, string | undefined>>;

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
  const isAlias = isLoopback(one.hostname) && isLoopback(other.hostname);
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
  const host = hostname.replaceAll(/[[\]]/g, '');
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
