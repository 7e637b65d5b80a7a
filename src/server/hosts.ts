/** Hosts, URLs and networks in flags, checked before the server creates anything. */

import { isIP } from 'node:net';
import { type IpNetwork, parseIpNetwork } from '../core/ip-network.ts';
import { UsageError } from '../platform/errors.ts';

const MAX_NAME_LENGTH = 253;
/** SOURCE: RFC 1123, section 2.1. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Returns the name in lower case. @throws UsageError */
export function parsePublicName(text: string, field: string): string {
  const name = text.toLowerCase();
  if (name.length <= MAX_NAME_LENGTH && name.split('.').every((label) => LABEL.test(label))) return name;
  throw new UsageError(
    `${field} must be host names such as vault.example, separated by commas: no scheme, no port, no wildcard.`,
  );
}

/** An IP address, or a network such as 10.0.0.0/8. @throws UsageError */
export function parseTrustedProxy(text: string, field: string): string {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  const isPrefix = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  // A zone names an interface of this machine, which X-Forwarded-For cannot contain.
  if (version === 0 || address.includes('%') || !isPrefix || more.length > 0) {
    throw new UsageError(`${field} must be addresses or networks such as 10.0.0.0/8, separated by commas.`);
  }
  if (bits !== undefined && Number(bits) === 0) {
    throw new UsageError(`${field} must not be every address (/0): each caller could then choose its own.`);
  }
  return text;
}

/** Networks separated by commas; an empty list for `none`. @throws UsageError */
export function parseTargetNetworks(text: string, field: string): readonly IpNetwork[] {
  if (text === 'none') return [];
  return text.split(',').map((item) => {
    const network = parseIpNetwork(item.trim());
    if (network !== null) return network;
    throw new UsageError(`${field} must be networks such as 10.0.0.0/8 or fd00::/8, separated by commas, or none.`);
  });
}

export type Listen =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

/** The host and port to listen on, or a socket. @throws UsageError */
export function parseListen(text: string, field: string): Listen {
  if (text.startsWith('unix:')) return { kind: 'unix', path: text.slice('unix:'.length) };
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new UsageError(`${field} must be HOST:PORT, [IPV6]:PORT or unix:PATH.`);
  return { kind: 'tcp', host: match[1] ?? match[2] ?? '', port };
}

export function isLoopback(listen: Listen): boolean {
  return listen.kind === 'unix' || isLoopbackHost(listen.host);
}

export function isLoopbackHost(host: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(host) || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** An HTTPS URL without a path; HTTP is allowed for this machine. @throws UsageError */
export function parseOwnUrl(text: string, field: string): string {
  const url = URL.parse(text);
  const isPrivate = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (url !== null && isPrivate && url.pathname === '/' && url.search === '' && url.username === '') return url.origin;
  throw new UsageError(`${field} must be https://HOST or https://HOST:PORT; http:// only for this machine.`);
}

/** The path of a secrets engine of Vault. @throws UsageError */
export function parseMount(text: string, field: string): string {
  if (/^[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/.test(text) && !text.includes('..')) return text;
  throw new UsageError(`${field} must be a path such as transit.`);
}
