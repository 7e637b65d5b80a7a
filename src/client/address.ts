/** Where the service is, checked once: a token must not go in the clear over a network that others share. */
import { badOption } from './errors.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Of a host as it stands in a URL. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** The base of every request, without a slash at its end. @throws LeaseholdError BAD_OPTIONS */
export function parseAddress(text: string, allowsInsecureHttp: boolean): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw badOption('address', 'must be http://HOST:PORT or https://HOST:PORT');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw badOption('address', 'must hold no user, no query and no fragment');
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !allowsInsecureHttp) {
    throw badOption(
      'address',
      'plain HTTP to another machine would show every value; use https://, or allow it with insecureHttp',
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}
