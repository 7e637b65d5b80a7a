/** Whether SDKs, which do not read `--ca-file`, trust the service's certificate. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { connect, rootCertificates } from 'node:tls';
import type { Terminal } from '../terminal.ts';
import { type CheckResult, ok, warning } from './check-result.ts';

const CHECK = 'SDK certificate';
const CONNECT_TIMEOUT_MS = 3000;
/** A private authority is missing. Other codes are about the certificate, such as its host names. */
const UNKNOWN_AUTHORITY = /^(?:DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const CERTIFICATE_FAULT = /^(?:ERR_TLS_CERT|CERT_|HOSTNAME_|INVALID_(?:CA|PURPOSE))/;
/** The variables that name a file of authorities, with the programs that read it. */
const VARIABLES = [
  ['NODE_EXTRA_CA_CERTS', 'Node'],
  ['SSL_CERT_FILE', 'OpenSSL, Go, httpx of Python'],
  ['REQUESTS_CA_BUNDLE', 'requests of Python'],
] as const;

/** No finding without TLS, or if the service is not reached, which another check reports. */
export async function checkCertificate(
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
    // The file of a variable is not PEM.
    settle('INVALID_FILE');
  }
  return promise;
}
