/**
 * Connections to upstreams. INVARIANT: the lookup that resolves a name for a connection also checks each of its
 * addresses. A connection is reused only under the rules by which it was checked.
 */
import { lookup as lookupName } from 'node:dns';
import type { Agent as PlainAgent } from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { http, IDLE_CONNECTION_MS } from '../platform/node-http.ts';
import { type AddressFields, AddressRules, checkHost } from './address-rules.ts';
import type { UpstreamRequestSpec } from './protocol.ts';
import { UpstreamError } from './protocol.ts';

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
    return { rules, agent: this.#createAgent(spec.scheme, spec.caPem, rules) };
  }

  #createAgent(
    scheme: UpstreamRequestSpec['scheme'],
    caPem: string | null,
    rules: AddressRules,
  ): PlainAgent | https.Agent {
    const options = {
      keepAlive: true,
      timeout: IDLE_CONNECTION_MS,
      maxFreeSockets: MAX_FREE_SOCKETS,
      lookup: this.#checkedLookup(rules),
      // The environment may name a proxy, which would resolve the name again.
      proxyEnv: {},
    };
    if (scheme === 'http') return new http.Agent(options);
    const authorities = caPem === null ? {} : { ca: caPem };
    return new https.Agent({ ...options, ...authorities, rejectUnauthorized: true, minVersion: 'TLSv1.2' });
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
