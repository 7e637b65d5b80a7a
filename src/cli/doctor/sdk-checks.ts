/**
 * Finds what keeps an SDK from working with a base URL of this vault. An SDK reads none of Leasehold's settings: it
 * finds the address, the certificate authority and the proxy in other variables.
 */
import { isLoopback } from '../../client/address.ts';
import type { Invocation } from '../command.ts';
import { checkBaseUrls } from './base-url-variables.ts';
import { type CheckResult, ok, warning } from './check-result.ts';
import { checkProxies } from './proxy-variables.ts';
import { checkCertificate } from './sdk-certificate.ts';

export async function checkSdks({ settings, terminal, signal }: Invocation): Promise<CheckResult[]> {
  const address = URL.parse(settings.address.value);
  if (address === null || !/^https?:$/.test(address.protocol)) {
    const found = 'SDKs cannot connect to a Unix socket: let the service listen on HOST:PORT too';
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
