/**
 * IP addresses and networks: their grammar, and which network contains which address. An IPv4 address and its
 * IPv4-mapped IPv6 form are one address, and no IPv6 network contains an IPv4 address. Pure.
 */

/** 4 bytes of an IPv4 address, or 16 of an IPv6 address that is not IPv4-mapped. */
export type IpAddress = readonly number[];

export interface IpNetwork {
  readonly text: string;
  readonly address: IpAddress;
  readonly bits: number;
}

const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
const MAPPED_BITS = 96;

/** Null for anything else, such as an address with a zone. */
export function parseIpAddress(text: string): IpAddress | null {
  const bytes = text.includes(':') ? parseIpv6(text) : parseIpv4(text);
  return bytes !== null && isMapped(bytes) ? bytes.slice(MAPPED_PREFIX.length) : bytes;
}

/** Whether a host is this machine's name or a loopback address. An IPv6 address may have the brackets of a URL. */
export function isLoopbackHost(host: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(host) || parseIpv4(host)?.[0] === 127;
}

/** Bits after the prefix are ignored. Null for anything that is not `ADDRESS/BITS`. */
export function parseIpNetwork(text: string): IpNetwork | null {
  const [, host = '', length = ''] = /^([0-9A-Fa-f:.]{2,45})\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const bytes = host.includes(':') ? parseIpv6(host) : parseIpv4(host);
  const bits = Number(length);
  if (bytes === null || bits > 8 * bytes.length) return null;
  if (!isMapped(bytes) || bits < MAPPED_BITS) return { text, address: bytes, bits };
  return { text, address: bytes.slice(MAPPED_PREFIX.length), bits: bits - MAPPED_BITS };
}

export function containsAddress({ address: own, bits }: IpNetwork, address: IpAddress): boolean {
  if (own.length !== address.length) return false;
  return own.every((byte, at) => {
    const inByte = Math.min(Math.max(bits - 8 * at, 0), 8);
    return (byte ^ (address[at] ?? 0)) >> (8 - inByte) === 0;
  });
}

/** Whether every address of `inner` is one of `outer`. */
function containsNetwork(outer: IpNetwork, inner: IpNetwork): boolean {
  return inner.bits >= outer.bits && containsAddress(outer, inner.address);
}

function parseIpv4(text: string): number[] | null {
  const parts = text.split('.');
  const isValid = parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256);
  return isValid ? parts.map(Number) : null;
}

function parseIpv6(text: string): number[] | null {
  const [, head = text, tail] = /^(.*:)(\d[\d.]*\.[\d.]*)$/.exec(text) ?? [];
  const ipv4 = tail === undefined ? [] : parseIpv4(tail);
  if (ipv4 === null) return null;
  const [a = 0, b = 0, c = 0, d = 0] = ipv4;
  const hex = tail === undefined ? head : `${head}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  const halves = hex.split('::').map((half) => (half === '' ? [] : half.split(':')));
  const [before = [], after = []] = halves;
  const missing = 8 - before.length - after.length;
  if (halves.length > 2 || (halves.length === 2 ? missing < 1 : missing !== 0)) return null;
  const groups = [...before, ...Array.from({ length: missing }, () => '0'), ...after];
  if (!groups.every((group) => /^[0-9A-Fa-f]{1,4}$/.test(group))) return null;
  return groups.flatMap((group) => {
    const word = Number.parseInt(group, 16);
    return [word >> 8, word & 0xff];
  });
}

const isMapped = (bytes: IpAddress): boolean =>
  bytes.length === 16 && MAPPED_PREFIX.every((byte, at) => bytes[at] === byte);

// The rules about the networks of targets: which ones no target ever reaches, which ones this server's targets may
// name, and which fields of a target are an operator's decision. SOURCE: docs/use.md, "Where a credential may go".

/**
 * Services from which a machine of a cloud reads its own identity and credentials: of Alibaba, Azure, AWS, Oracle,
 * Google and Scaleway outside of link-local addresses, which are all included.
 */
export const METADATA_NETWORKS: readonly IpNetwork[] = [
  ...['169.254.0.0/16', 'fe80::/10', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
  ...['fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:42::42/128'],
].flatMap((text) => parseIpNetwork(text) ?? []);

export function isNetwork(text: string): boolean {
  return parseIpNetwork(text) !== null;
}

/** The fields of a target that the rules read. */
interface Reach {
  readonly origin: string;
  readonly allowNetworks: readonly string[];
  readonly caPem: string | null;
}

export interface NetworkViolation {
  readonly field: string;
  /** The networks that this server allows. */
  readonly networks: readonly string[];
}

/** The first field that an agent may not set; null for public targets over HTTPS. */
export function operatorField(targets: readonly Reach[]): string | null {
  for (const [index, { origin, allowNetworks, caPem }] of targets.entries()) {
    const field = `targets[${index}]`;
    if (allowNetworks.length > 0) return `${field}.allow_networks`;
    if (origin.startsWith('http:')) return `${field}.origin`;
    if (caPem !== null) return `${field}.ca_pem`;
  }
  return null;
}

/** The first network that this server's targets may not name; null if there is none. `limits`: null for all. */
export function networkViolation(
  targets: readonly Reach[],
  limits: readonly IpNetwork[] | null,
): NetworkViolation | null {
  if (limits === null) return null;
  const field = firstNetwork(targets, (network) => network === null || !isWithin(network, limits));
  return field === null ? null : { field, networks: limits.map((each) => each.text) };
}

export function unreachableNetwork(targets: readonly Reach[]): string | null {
  return firstNetwork(targets, (network) => network !== null && isWithin(network, METADATA_NETWORKS));
}

const isWithin = (network: IpNetwork, outer: readonly IpNetwork[]): boolean =>
  outer.some((each) => containsNetwork(each, network));

/** The field of the first network for which `matches` holds; it receives null for a text that is no network. */
function firstNetwork(targets: readonly Reach[], matches: (network: IpNetwork | null) => boolean): string | null {
  for (const [index, { allowNetworks }] of targets.entries()) {
    const at = allowNetworks.findIndex((text) => matches(parseIpNetwork(text)));
    if (at !== -1) return `targets[${index}].allow_networks[${at}]`;
  }
  return null;
}
