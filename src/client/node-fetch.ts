/**
 * The part of `fetch` that the client uses, on Node's HTTP client: for Unix sockets and private certificate
 * authorities, which Node's `fetch` does not support. WHY `getBuiltinModule`: bundlers for browsers follow every import
 * and fail at modules of Node.
 */
import type { IncomingMessage, request as nodeRequest, RequestOptions } from 'node:http';
import { badOption } from './errors.ts';
import { notLeasehold } from './responses.ts';

/** WHY less than 5 s: common proxies close a connection after 5 s without a request, and one sent then fails. */
const IDLE_MS = 4000;
const PEM = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/;

export function unixFetch(socketPath: string): typeof fetch {
  return fetchWith(globalThis.process.getBuiltinModule('node:http').request, { socketPath });
}

/** Trusts these certificate authorities and no others. @throws LeaseholdError BAD_OPTIONS */
export function caFetch(ca: string): typeof fetch {
  if (!PEM.test(ca)) throw badOption('ca', 'must be one or more certificates in PEM');
  const { getBuiltinModule } = globalThis.process ?? {};
  if (getBuiltinModule === undefined) throw badOption('ca', 'can be used in Node, Bun and Deno only');
  const { Agent, request } = getBuiltinModule('node:https');
  return fetchWith(request, { agent: new Agent({ ca, keepAlive: true, timeout: IDLE_MS }) });
}

function fetchWith(request: typeof nodeRequest, target: Pick<RequestOptions, 'socketPath' | 'agent'>): typeof fetch {
  return (input, init) =>
    new Promise((resolve, reject) => {
      const { method = 'GET', headers, body, signal } = init ?? {};
      const options = { ...target, method, headers: Object.fromEntries(new Headers(headers)) };
      const call = request(String(input), { ...options, ...(signal ? { signal } : {}) }, (response) => {
        // WHY caught: an exception in this callback would end the process.
        try {
          resolve(toResponse(response));
        } catch {
          call.destroy();
          reject(notLeasehold({ status: response.statusCode ?? 0 }));
        }
      });
      call.on('upgrade', (response, socket) => {
        socket.destroy();
        reject(notLeasehold({ status: response.statusCode ?? 0 }));
      });
      call.on('error', (error) => reject(new TypeError('fetch failed', { cause: error })));
      call.end(typeof body === 'string' ? body : undefined);
    });
}

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
