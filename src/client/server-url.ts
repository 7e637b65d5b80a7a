/** Parses the server's URL once. A token must not cross a shared network in plain text. */
import { isLoopbackHost } from '../core/ip-network.ts';
import { badOption } from './errors.ts';

/** Whether a connection to the host stays on this machine. It is wider than the rule for plain text. */
export function isThisMachine(host: string): boolean {
  return (
    isLoopbackHost(host) ||
    /^(?:0\.0\.0\.0|\[::\]|\[::ffff:(?:7f[0-9a-f]{2}:[0-9a-f]{1,4}|0:0)\]|(?:.+\.)?localhost\.?)$/.test(host)
  );
}

/** Returns the base URL of every request, without a trailing slash. @throws LeaseholdError BAD_OPTIONS */
export function parseServerUrl(text: string, allowsInsecureHttp: boolean): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw badOption('address', 'must be http://HOST:PORT or https://HOST:PORT');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw badOption('address', 'must not contain a user, a query or a fragment');
  }
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname) && !allowsInsecureHttp) {
    throw badOption(
      'address',
      'plain HTTP to another machine exposes every value; use https://, or allow it with insecureHttp',
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}
