/** Host names and networks in flags, checked before the service creates anything. */

import { isIP } from 'node:net';
import { type IpNetwork, parseIpNetwork } from '../core/ip-network.ts';
import { UsageError } from '../platform/errors.ts';

const MAX_NAME_LENGTH = 253;
/** SOURCE: RFC 1123, section 2.1. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Returns the name in lower case. @throws UsageError */
export function parsePublicName(text: string): string {
  const name = text.toLowerCase();
  if (name.length <= MAX_NAME_LENGTH && name.split('.').every((label) => LABEL.test(label))) return name;
  throw new UsageError(
    '--public-name must be host names such as vault.example, separated by commas: no scheme, no port, no wildcard.',
  );
}

/** An address, or a network such as 10.0.0.0/8. @throws UsageError */
export function parseTrustedProxy(text: string): string {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  const isPrefix = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  // A zone names an interface of this machine, which X-Forwarded-For cannot contain.
  if (version === 0 || address.includes('%') || !isPrefix || more.length > 0) {
    throw new UsageError('--trusted-proxy must be addresses or networks such as 10.0.0.0/8, separated by commas.');
  }
  if (bits !== undefined && Number(bits) === 0) {
    throw new UsageError('--trusted-proxy must not be every address (/0): each caller could then choose its own.');
  }
  return text;
}

/** Networks separated by commas; an empty list for `none`, null without the flag. @throws UsageError */
export function parseTargetNetworks(text: string | undefined): readonly IpNetwork[] | null {
  if (text === undefined) return null;
  if (text === 'none') return [];
  return text.split(',').map((item) => {
    const network = parseIpNetwork(item.trim());
    if (network !== null) return network;
    throw new UsageError(
      '--target-networks must be networks such as 10.0.0.0/8 or fd00::/8, separated by commas, or none.',
    );
  });
}
