/**
 * Decides to which addresses a connection may be made. Refused are all that are not public, all through which a tunnel
 * or translator reaches such an address, and the machine's own, unless the credential's target allows the network.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { UpstreamError } from './upstream-error.ts';

/** SOURCE: IANA IPv4 Special-Purpose Address Registry, and the addresses of metadata services. */
const REFUSED_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
  // Metadata services of Alibaba and Azure, the latter in public space.
  ...['100.100.100.200/32', '168.63.129.16/32'],
];
/** SOURCE: IANA IPv6 Special-Purpose Address Registry; within 2000::/3, outside of which nothing is public. */
const REFUSED_IPV6 = ['2001:2::/48', '2001:10::/28', '2001:20::/28', '2001:db8::/32', '3fff::/20'];
const PUBLIC_IPV6 = ['2000::/3', '64:ff9b::/96'];

const refused = toBlockList([...REFUSED_IPV4, ...REFUSED_IPV6]);
const publicIpv6 = toBlockList(PUBLIC_IPV6);

export class AddressRules {
  readonly #allowed: BlockList;
  readonly #isAllowedOnly: boolean;
  readonly #readOwn: () => readonly string[];

  /**
   * `isAllowedOnly`: only addresses in an allowed network are permitted, as for requests without TLS. `readOwn` returns
   * the addresses of the machine.
   * @throws UpstreamError for an invalid network
   */
  constructor(allowNetworks: readonly string[], isAllowedOnly: boolean, readOwn = readOwnAddresses) {
    this.#allowed = toBlockList(allowNetworks);
    this.#isAllowedOnly = isAllowedOnly;
    this.#readOwn = readOwn;
  }

  /** Checks the address and every IPv4 address that it contains. */
  permits(address: string): boolean {
    const bytes = isIPv6(address) ? parseIpv6(address) : null;
    if (bytes === null) return isIPv4(address) && this.#permitsOne(address);
    const embedded = embeddedIpv4(bytes);
    const isSpelling = isMapped(bytes);
    return (isSpelling || this.#permitsOne(formatIpv6(bytes))) && embedded.every((each) => this.#permitsOne(each));
  }

  #permitsOne(address: string): boolean {
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (this.#allowed.check(address, family)) return true;
    if (this.#isAllowedOnly || refused.check(address, family) || this.#isOwn(address)) return false;
    return family === 'ipv4' || publicIpv6.check(address, 'ipv6');
  }

  /** WHY read each time: interfaces come and go, and a check is made once per connection. */
  #isOwn(address: string): boolean {
    return this.#readOwn().some((own) => {
      const bytes = isIPv6(own) ? parseIpv6(own) : null;
      return (bytes === null ? own : formatIpv6(bytes)) === address;
    });
  }
}

/**
 * The host without brackets.
 * @throws UpstreamError for a host that is neither a canonical address nor a DNS name
 */
export function checkHost(host: string): string {
  if (isIPv4(host)) return host;
  if (host.startsWith('[') && host.endsWith(']')) {
    const address = host.slice(1, -1);
    if (isIPv6(address) && !address.includes('%') && new URL(`http://${host}`).hostname === host) return address;
    throw new UpstreamError('refused_address');
  }
  const labels = host.split('.');
  const isName = host.length <= 253 && labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
  // WHY the last label: resolvers read 127.1, 2130706433 and 0x7f.1 as addresses.
  if (!isName || /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '')) throw new UpstreamError('refused_address');
  return host;
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', length = '', ...rest] = network.split('/');
    const isV4 = isIPv4(address);
    const isValid = (isV4 || isIPv6(address)) && /^\d{1,3}$/.test(length) && rest.length === 0;
    if (!isValid || Number(length) > (isV4 ? 32 : 128)) throw new UpstreamError('protocol');
    list.addSubnet(address, Number(length), isV4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

function readOwnAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((entries) => (entries ?? []).map(({ address }) => address));
}

/** The 16 bytes; null with a zone or anything else that is not a plain address. */
function parseIpv6(address: string): number[] | null {
  if (!/^[0-9a-f:.]+$/i.test(address)) return null;
  const hex = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(0, 4).map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head = '', tail] = hex.split('::');
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].flatMap((group) => {
    const word = Number.parseInt(group, 16);
    return [word >> 8, word & 0xff];
  });
}

function formatIpv6(bytes: readonly number[]): string {
  return Array.from({ length: 8 }, (_, at) =>
    (((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)).toString(16),
  ).join(':');
}

const startsWith = (bytes: readonly number[], ...prefix: number[]): boolean =>
  prefix.every((byte, at) => bytes[at] === byte);
const isZero = (bytes: readonly number[]): boolean => bytes.every((byte) => byte === 0);
const isMapped = (bytes: readonly number[]): boolean =>
  isZero(bytes.slice(0, 10)) && startsWith(bytes.slice(10), 0xff, 0xff);

/** Every IPv4 address to which a packet for the address may be sent on. */
function embeddedIpv4(bytes: readonly number[]): string[] {
  const dotted = (...at: number[]): string => at.map((index) => bytes[index]).join('.');
  const last = dotted(12, 13, 14, 15);
  // Mapped, compatible, and translated (RFC 2765).
  if (isMapped(bytes) || isZero(bytes.slice(0, 12))) return [last];
  if (isZero(bytes.slice(0, 8)) && startsWith(bytes.slice(8), 0xff, 0xff, 0, 0)) return [last];
  // NAT64. SOURCE: RFC 6052, 2.2; the local prefix may have several lengths.
  if (startsWith(bytes, 0, 0x64, 0xff, 0x9b, 0, 1))
    return [last, dotted(6, 7, 9, 10), dotted(7, 9, 10, 11), dotted(9, 10, 11, 12)];
  if (startsWith(bytes, 0, 0x64, 0xff, 0x9b)) return [last];
  // 6to4, and Teredo with its server and the client's inverted address.
  if (startsWith(bytes, 0x20, 0x02)) return [dotted(2, 3, 4, 5)];
  if (startsWith(bytes, 0x20, 0x01, 0, 0)) {
    return [
      dotted(4, 5, 6, 7),
      bytes
        .slice(12)
        .map((byte) => byte ^ 0xff)
        .join('.'),
    ];
  }
  // ISATAP.
  const isIsatap = startsWith(bytes.slice(9), 0, 0x5e, 0xfe) && ((bytes[8] ?? 0) & 0xfd) === 0;
  return isIsatap ? [last] : [];
}
