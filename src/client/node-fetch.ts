/**
 * The part of `fetch` that the client uses, on Node's HTTP client: for Unix sockets, private certificate authorities,
 * and connections that must not pass a proxy. INVARIANT: a connection to this machine, and one in plain text, is made
 * directly, whatever proxy the environment names. WHY `getBuiltinModule`: bundlers for browsers follow every import
 * and fail at modules of Node.
 */
import type { Agent, IncomingMessage, request as nodeRequest } from 'node:http';
import type { LookupFunction } from 'node:net';
import { badOption, LeaseholdError } from './errors.ts';
import { notLeasehold } from './read-response.ts';
import { isThisMachine } from './server-url.ts';

/** WHY less than 5 s: common proxies close a connection after 5 s without a request, and a request sent then fails. */
const IDLE_MS = 4000;
/** Interim responses to one request. WHY: nothing slows their sender down, and parsing them delays all other work. */
const MAX_INTERIM_RESPONSES = 100;
/**
 * All heads before a response together. WHY a limit: the parser skips empty lines before a response without a limit.
 */
const MAX_BYTES_BEFORE_RESPONSE = 256 * 1024;
const PEM = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/;

interface Connector {
  readonly request: typeof nodeRequest;
  readonly agent: Agent;
}

/**
 * The runtime's `fetch` for `https:` to another machine, where TLS protects the request from a proxy. Every other
 * request is sent over a direct connection. In browsers, which have no such variables, it is `fetch` itself.
 */
export const safeFetch: typeof fetch = (input, init) => {
  const url = new URL(String(input));
  const isProxyAllowed = url.protocol === 'https:' && !isThisMachine(url.hostname);
  if (isProxyAllowed || globalThis.process?.getBuiltinModule === undefined) return fetch(input, init);
  sharedDirectFetch ??= directFetch();
  return sharedDirectFetch(url, init);
};

let sharedDirectFetch: typeof fetch | null = null;

interface ConnectorOptions {
  readonly ca?: string;
  readonly socketPath?: string;
  /** Called with each agent before its first request. */
  readonly setUp?: (agent: Agent) => void;
}

export function directFetch({ setUp, ...options }: ConnectorOptions = {}): typeof fetch {
  const connectors = new Map<string, Connector>();
  return (input, init) => {
    const { protocol } = new URL(String(input));
    let connector = connectors.get(protocol);
    if (connector === undefined) {
      const { process } = globalThis;
      // With a certificate authority a request for `http:` fails instead of being sent in plain text.
      const isTls = protocol === 'https:' || options.ca !== undefined;
      const http = isTls ? process.getBuiltinModule('node:https') : process.getBuiltinModule('node:http');
      connector = { request: http.request, agent: new http.Agent({ ...agentOptions(), ...options }) };
      setUp?.(connector.agent);
      connectors.set(protocol, connector);
    }
    return send(connector, input, init);
  };
}

/** Trusts only these certificate authorities, and connects directly. @throws LeaseholdError BAD_OPTIONS */
export function caFetch(ca: string, options: Pick<ConnectorOptions, 'setUp'> = {}): typeof fetch {
  if (!PEM.test(ca)) throw badOption('ca', 'must be one or more certificates in PEM');
  if (globalThis.process?.getBuiltinModule === undefined)
    throw badOption('ca', 'can be used in Node, Bun and Deno only');
  return directFetch({ ...options, ca });
}

/** WHY `proxyEnv` is empty: with NODE_USE_ENV_PROXY, Node's own agents use the proxies that the environment names. */
const agentOptions = () => ({ keepAlive: true, timeout: IDLE_MS, proxyEnv: {}, lookup: lookupOwn() });

/**
 * Resolves `localhost` to this machine without a query to a name server, which could return another machine. SOURCE:
 * RFC 6761, section 6.3.
 */
export function lookupOwn(): LookupFunction {
  const { lookup } = globalThis.process.getBuiltinModule('node:dns');
  return (host, options, callback) => {
    if (host !== 'localhost') lookup(host, options, callback);
    else if (options.all !== true) callback(null, '127.0.0.1', 4);
    else {
      const addresses = [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ];
      callback(null, addresses);
    }
  };
}

const send = (
  { request, agent }: Connector,
  input: Parameters<typeof fetch>[0],
  init: Parameters<typeof fetch>[1],
): Promise<Response> =>
  new Promise((resolve, reject) => {
    const { method = 'GET', headers, body, signal } = init ?? {};
    const options = { agent, method, headers: Object.fromEntries(new Headers(headers)) };
    const call = request(String(input), { ...options, ...(signal ? { signal } : {}) }, (response) => {
      // WHY caught: an exception in this callback would end the process.
      try {
        resolve(toResponse(response));
      } catch {
        call.destroy();
        reject(notLeasehold({ status: response.statusCode ?? 0 }));
      }
    });
    call.on('socket', (socket) => {
      // WHY: Node removes its own listener between two requests, and an error then would end the process.
      if (!call.reusedSocket) socket.on('error', () => undefined);
      let bytes = 0;
      const count = ({ length }: Uint8Array): void => {
        bytes += length;
        if (bytes > MAX_BYTES_BEFORE_RESPONSE) call.destroy();
      };
      socket.on('data', count);
      for (const event of ['response', 'upgrade', 'close']) call.once(event, () => socket.off('data', count));
    });
    let interimResponses = 0;
    call.on('information', ({ statusCode }) => {
      interimResponses += 1;
      if (interimResponses <= MAX_INTERIM_RESPONSES) return;
      // ORDER: before the parser reaches a response in the same packet.
      reject(notLeasehold({ status: statusCode }));
      call.destroy();
    });
    call.on('close', () => reject(new TypeError('fetch failed')));
    call.on('upgrade', (response, socket) => {
      socket.on('error', () => undefined).destroy();
      reject(notLeasehold({ status: response.statusCode ?? 0 }));
    });
    call.on('error', (error) => {
      reject(error instanceof LeaseholdError ? error : new TypeError('fetch failed', { cause: error }));
    });
    call.end(typeof body === 'string' || body instanceof URLSearchParams ? String(body) : undefined);
  });

/** @throws TypeError, RangeError for a status outside 200 to 599, and for a body that the status does not allow */
function toResponse(message: IncomingMessage): Response {
  const { Readable } = globalThis.process.getBuiltinModule('node:stream');
  const status = message.statusCode ?? 0;
  const headers = Object.entries(message.headers).map(([name, value]): [string, string] => [name, String(value)]);
  // The constructor rejects a body with these statuses, even an empty one.
  const isBodyless = status === 204 || status === 304;
  if (isBodyless) message.resume();
  const content = isBodyless ? null : (Readable.toWeb(message) as ReadableStream<Uint8Array>);
  return new Response(content, { status, headers });
}
