/** A proxy between the client and the server: records requests, and injects network faults into single ones. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scope } from '../kit/directory.ts';

interface Seen {
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** The effect on a request. */
export type Act =
  /** The request does not reach the server, and the connection ends. */
  | 'cut before'
  /** The request takes effect, and its response is lost. */
  | 'cut after'
  /** No response arrives, and the connection stays open. */
  | 'silence'
  /** Passes on the first bytes of the response body, and then ends the connection. */
  | { readonly bytes: number }
  /** Sends half of the response body, then single bytes until the promise resolves, and then the rest. */
  | { readonly slowlyUntil: Promise<unknown> }
  /** Sends this response instead of that of the server. */
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** Delays the request until the promise resolves; a function makes it when the request arrives. */
  | { readonly after: Promise<unknown> | (() => Promise<unknown>) };

export interface Between {
  readonly address: string;
  readonly seen: readonly Seen[];
  /** Applies to the next matching request, once; other requests are passed on. */
  next(act: Act, fits?: (seen: Seen) => boolean): void;
  /** The number of requests to a route such as `POST /auth/verify`. */
  count(call: string): number;
}

export async function standBetween(scope: Scope, service: { readonly address: string }): Promise<Between> {
  const seen: Seen[] = [];
  const waiting: { act: Act; fits: (seen: Seen) => boolean }[] = [];
  const server = createServer(async (asked, answer) => {
    const body = await buffer(asked);
    const { method = '', url: path = '', headers } = asked;
    const call = { method, path, headers, body: body.toString() };
    seen.push(call);
    const at = waiting.findIndex(({ fits }) => fits(call));
    const [found] = at === -1 ? [] : waiting.splice(at, 1);
    // A request that was delayed until its test had ended finds no server.
    await perform(found?.act ?? 'pass', call, answer, service.address).catch(() => answer.destroy());
  });
  // Its responses have the server’s Keep-Alive header, so it must not close idle connections earlier.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  scope.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    next: (act, fits = () => true) => void waiting.push({ act, fits }),
    count: (call) => seen.filter(({ method, path }) => `${method} ${path.split('?')[0]}` === call).length,
  };
}

async function perform(act: Act | 'pass', call: Seen, answer: ServerResponse, address: string): Promise<void> {
  if (act === 'silence') return;
  if (act === 'cut before') return void answer.destroy();
  if (typeof act === 'object' && 'status' in act) {
    answer.writeHead(act.status, act.headers).end(act.body);
    return;
  }
  if (typeof act === 'object' && 'after' in act) await (typeof act.after === 'function' ? act.after() : act.after);
  const { method, headers, path, body } = call;
  const received = await new Promise<IncomingMessage>((resolve, reject) => {
    request(`${address}${path}`, { method, headers }, resolve).once('error', reject).end(body);
  });
  if (act === 'cut after') {
    await buffer(received);
    answer.destroy();
    return;
  }
  answer.writeHead(received.statusCode ?? 0, received.headers);
  if (typeof act === 'object' && 'bytes' in act) {
    const whole = await buffer(received);
    answer.write(whole.subarray(0, act.bytes), () => setTimeout(() => answer.destroy(), 50));
  } else if (typeof act === 'object' && 'slowlyUntil' in act) {
    const whole = await buffer(received);
    let sent = Math.ceil(whole.length / 2);
    answer.write(whole.subarray(0, sent));
    let isOver = false;
    void act.slowlyUntil.then(() => {
      isOver = true;
    });
    for (; !isOver && sent < whole.length; sent++) {
      await sleep(50);
      answer.write(whole.subarray(sent, sent + 1));
    }
    answer.end(whole.subarray(sent));
  } else received.pipe(answer);
}
