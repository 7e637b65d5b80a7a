/**
 * Connections to upstreams. INVARIANT: the lookup that resolves a name for a connection also checks each of its
 * addresses. A connection is reused only under the rules by which it was checked.
 */
import { lookup as lookupName } from 'node:dns';
import type { Agent as PlainAgent } from 'node:http';
import https from 'node:https';
import { isIP, isIPv4, isIPv6, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import {
  containsAddress,
  type IpAddress,
  type IpNetwork,
  METADATA_NETWORKS,
  parseIpAddress,
  parseIpNetwork,
} from '../core/ip-network.ts';
import { http, IDLE_CONNECTION_MS } from '../platform/node-http.ts';
import { UpstreamError, type UpstreamRequestSpec } from './protocol.ts';

export interface Address {
  readonly address: string;
  readonly family: number;
}

export type Resolve = (name: string) => Promise<readonly Address[]>;

export interface Connector {
  readonly agent: PlainAgent | https.Agent;
  /** The host without brackets. */
  readonly host: string;
  /** The name for the handshake; empty for an IP address. */
  readonly servername: string;
}

interface Route {
  readonly agent: PlainAgent | https.Agent;
  readonly rules: AddressRules;
}

const MAX_FREE_SOCKETS = 256;
const MAX_ROUTES = 512;

const resolveBySystem: Resolve = (name) => {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Address[]>();
  lookupName(name, { all: true }, (error, addresses) => (error === null ? resolve(addresses) : reject(error)));
  return promise;
};

export class ConnectionPool {
  readonly #routes = new Map<string, Route>();
  readonly #resolve: Resolve;

  constructor(resolve: Resolve = resolveBySystem) {
    this.#resolve = resolve;
  }

  /** @throws UpstreamError if the host is invalid, or is an address to which no connection may be made */
  connectorFor(spec: AddressFields & Pick<UpstreamRequestSpec, 'host' | 'caPem'>): Connector {
    const host = checkHost(spec.host);
    const { scheme, port, caPem, allowNetworks, targetNetworks, ownPorts } = spec;
    const key = JSON.stringify([scheme, spec.host, port, caPem, allowNetworks, targetNetworks, ownPorts]);
    const route = this.#routes.get(key) ?? this.#createRoute(spec);
    // Node does not look up an IP address, so the checked lookup never sees it.
    const isAddress = isIP(host) !== 0;
    if (isAddress && !route.rules.permits(host)) throw new UpstreamError('refused_address');
    // The most recently used route is last. The agent of a dropped route closes its idle connections itself.
    this.#routes.delete(key);
    this.#routes.set(key, route);
    for (const oldest of this.#routes.keys()) {
      if (this.#routes.size <= MAX_ROUTES) break;
      this.#routes.delete(oldest);
    }
    return { agent: route.agent, host, servername: isAddress ? '' : host };
  }

  close(): void {
    for (const { agent } of this.#routes.values()) agent.destroy();
    this.#routes.clear();
  }

  #createRoute(spec: AddressFields & Pick<UpstreamRequestSpec, 'caPem'>): Route {
    const rules = new AddressRules(spec);
    const options = {
      keepAlive: true,
      timeout: IDLE_CONNECTION_MS,
      maxFreeSockets: MAX_FREE_SOCKETS,
      lookup: this.#checkedLookup(rules),
      // The environment may name a proxy, which would resolve the name again.
      proxyEnv: {},
    };
    if (spec.scheme === 'http') return { rules, agent: new http.Agent(options) };
    const authorities = spec.caPem === null ? {} : { ca: spec.caPem };
    const tls = { ...authorities, rejectUnauthorized: true, minVersion: 'TLSv1.2' } as const;
    return { rules, agent: new https.Agent({ ...options, ...tls }) };
  }

  #checkedLookup(rules: AddressRules): LookupFunction {
    return (name, options, callback) => {
      const answer = (addresses: readonly Address[]): void => {
        // WHY all: a name with one address in a private network is not a public name, whichever address is dialled.
        const isPermitted = addresses.every(({ address }) => rules.permits(address));
        const [first] = addresses;
        if (first === undefined) callback(new UpstreamError('dns'), '', 0);
        else if (!isPermitted) callback(new UpstreamError('refused_address'), '', 0);
        else if (options.all === true) callback(null, [...addresses]);
        else callback(null, first.address, first.family);
      };
      this.#resolve(name).then(answer, () => callback(new UpstreamError('dns'), '', 0));
    };
  }
}

// The addresses to which a connection may be made. All non-public addresses are rejected, all addresses through
// which a tunnel or translator reaches one, and the machine's own, unless the credential's target allows the network.
// Metadata services and the server's own listeners are rejected whatever a target allows.

/** SOURCE: IANA IPv4 Special-Purpose Address Registry. */
const NON_PUBLIC_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
];
/** SOURCE: IANA IPv6 Special-Purpose Address Registry; within 2000::/3, outside of which nothing is public. */
const NON_PUBLIC_IPV6 = ['2001:2::/48', '2001:10::/28', '2001:20::/28', '2001:db8::/32', '3fff::/20'];

const nonPublic = toNetworks([...NON_PUBLIC_IPV4, ...NON_PUBLIC_IPV6]);
const publicIpv6 = toNetworks(['2000::/3', '64:ff9b::/96']);
/** Every system treats these as its own, whichever interfaces it has. */
const loopback = toNetworks(['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128']);

export type AddressFields = Pick<
  UpstreamRequestSpec,
  'scheme' | 'port' | 'allowNetworks' | 'targetNetworks' | 'ownPorts'
>;

export class AddressRules {
  readonly #allowed: readonly IpNetwork[];
  /** The only networks that targets can allow; null for all. */
  readonly #limits: readonly IpNetwork[] | null;
  /** Whether only allowed networks are permitted; true for requests without TLS. */
  readonly #isAllowedOnly: boolean;
  readonly #isOwnPort: boolean;
  readonly #readOwn: () => readonly string[];

  /** `readOwn` returns the addresses of the machine. @throws UpstreamError for an invalid network */
  constructor(fields: AddressFields, readOwn = readOwnAddresses) {
    this.#allowed = toNetworks(fields.allowNetworks);
    this.#limits = fields.targetNetworks === null ? null : toNetworks(fields.targetNetworks);
    this.#isAllowedOnly = fields.scheme === 'http';
    this.#isOwnPort = fields.ownPorts.includes(fields.port);
    this.#readOwn = readOwn;
  }

  /** Checks the address and every IPv4 address that it contains. */
  permits(text: string): boolean {
    const address = parseIpAddress(text);
    if (address === null) return false;
    return [address, ...embeddedIpv4(address)].every((each) => this.#permitsOne(each));
  }

  #permitsOne(address: IpAddress): boolean {
    if (isWithin(METADATA_NETWORKS, address)) return false;
    const isLoopback = isWithin(loopback, address);
    if (this.#isOwnPort && (isLoopback || this.#isOwn(address))) return false;
    if (isWithin(this.#allowed, address) && (this.#limits === null || isWithin(this.#limits, address))) return true;
    if (this.#isAllowedOnly || isLoopback || isWithin(nonPublic, address) || this.#isOwn(address)) return false;
    return address.length === 4 || isWithin(publicIpv6, address);
  }

  /** WHY read each time: interfaces come and go, and a check is made once per connection. */
  #isOwn(address: IpAddress): boolean {
    return this.#readOwn().some((own) => {
      const bytes = parseIpAddress(own);
      return bytes?.length === address.length && bytes.every((byte, at) => byte === address[at]);
    });
  }
}

/** The host without brackets. @throws UpstreamError for a host that is neither a canonical address nor a DNS name */
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

const isWithin = (networks: readonly IpNetwork[], address: IpAddress): boolean =>
  networks.some((network) => containsAddress(network, address));

function toNetworks(texts: readonly string[]): IpNetwork[] {
  return texts.map((text) => {
    const network = parseIpNetwork(text);
    if (network === null) throw new UpstreamError('protocol');
    return network;
  });
}

function readOwnAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((entries) => (entries ?? []).map(({ address }) => address));
}

const startsWith = (bytes: IpAddress, ...prefix: number[]): boolean => prefix.every((byte, at) => bytes[at] === byte);
const isZero = (bytes: IpAddress): boolean => bytes.every((byte) => byte === 0);

/** Every IPv4 address to which a packet for an IPv6 address may be forwarded. */
function embeddedIpv4(bytes: IpAddress): IpAddress[] {
  if (bytes.length === 4) return [];
  const part = (...at: number[]): number[] => at.map((index) => bytes[index] ?? 0);
  const last = part(12, 13, 14, 15);
  // IPv4-compatible addresses except `::` and `::1`, and translated ones. SOURCE: RFC 4291, 2.5.5.1; RFC 2765.
  if (isZero(bytes.slice(0, 12))) return isWithin(loopback, bytes) ? [] : [last];
  if (isZero(bytes.slice(0, 8)) && startsWith(bytes.slice(8), 0xff, 0xff, 0, 0)) return [last];
  // NAT64. SOURCE: RFC 6052, 2.2; the local prefix may have several lengths.
  if (startsWith(bytes, 0, 0x64, 0xff, 0x9b, 0, 1))
    return [last, part(6, 7, 9, 10), part(7, 9, 10, 11), part(9, 10, 11, 12)];
  if (startsWith(bytes, 0, 0x64, 0xff, 0x9b)) return [last];
  // 6to4, and Teredo with its server and the client's inverted address.
  if (startsWith(bytes, 0x20, 0x02)) return [part(2, 3, 4, 5)];
  if (startsWith(bytes, 0x20, 0x01, 0, 0)) return [part(4, 5, 6, 7), last.map((byte) => byte ^ 0xff)];
  // ISATAP.
  const isIsatap = startsWith(bytes.slice(9), 0, 0x5e, 0xfe) && ((bytes[8] ?? 0) & 0xfd) === 0;
  return isIsatap ? [last] : [];
}
