/** `fetch` over a Unix socket, as far as the client uses it: Node's own takes no socket. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { notLeasehold } from '../client/answers.ts';

export function unixFetch(socketPath: string): typeof fetch {
  return async (input, init) => {
    // WHY not above: with it all of Node's fetch is loaded, a third of the time in which the command starts.
    const { request } = await import('node:http');
    return new Promise((resolve, reject) => {
      const { pathname, search } = new URL(String(input));
      const { method = 'GET', headers, body, signal } = init ?? {};
      const call = request(
        {
          socketPath,
          path: pathname + search,
          method,
          headers: { host: 'localhost', ...Object.fromEntries(new Headers(headers)) },
          ...(signal ? { signal } : {}),
        },
        (answer) => {
          // WHY not left to throw: in a callback nobody would catch it.
          try {
            resolve(toResponse(answer));
          } catch {
            call.destroy();
            reject(notLeasehold({ status: answer.statusCode ?? 0 }));
          }
        },
      );
      call.on('upgrade', (answer, socket) => {
        socket.destroy();
        reject(notLeasehold({ status: answer.statusCode ?? 0 }));
      });
      call.on('error', (error) => reject(new TypeError('fetch failed', { cause: error })));
      call.end(typeof body === 'string' ? body : undefined);
    });
  };
}

/** @throws TypeError, RangeError for a status that is none, and for one that may have no body and does not end without one */
function toResponse(answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 0;
  const headers = new Headers();
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  // A response with such a status may have no body, not even an empty one.
  const isBare = status === 204 || status === 304;
  if (isBare) answer.resume();
  const content = isBare ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
  return new Response(content, { status, headers });
}
