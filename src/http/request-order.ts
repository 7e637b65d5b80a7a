/**
 * Limits the pipelined requests of a connection, and starts them in order.
 * SOURCE: RFC 9112, section 9.3.2: in order, unless all of them have safe methods.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests on one connection that were sent without waiting for the responses to earlier ones. */
const MAX_PIPELINED = 8;
const SAFE_METHODS: ReadonlySet<unknown> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** Closes connections with more than `MAX_PIPELINED` pipelined requests. */
export function limitPipelining(server: Server): void {
  const waiting = new WeakMap<Socket, number>();
  // Prepended, so that it runs before the framework's listener.
  server.prependListener('request', ({ socket }, response) => {
    // Only a response that is queued behind another one has no socket yet.
    if (response.socket !== null) return;
    const count = (waiting.get(socket) ?? 0) + 1;
    if (count > MAX_PIPELINED) socket.destroy();
    waiting.set(socket, count);
    response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1));
  });
}

interface Entry {
  readonly isSafe: boolean;
  /** Null after it was called. */
  start: (() => void) | null;
}

export class RequestOrder {
  readonly #unanswered = new WeakMap<Socket, Entry[]>();

  /**
   * Calls `start` when the earlier requests of the connection are answered; immediately if they and this one are safe.
   */
  enter({ method, socket }: IncomingMessage, response: ServerResponse, start: () => void): void {
    const entry: Entry = { isSafe: SAFE_METHODS.has(method), start };
    const entries = this.#unanswered.get(socket) ?? [];
    entries.push(entry);
    if (entries.length === 1) this.#unanswered.set(socket, entries);
    response.once('close', () => {
      entries.splice(entries.indexOf(entry), 1);
      startNext(entries);
    });
    startNext(entries);
  }
}

function startNext(entries: readonly Entry[]): void {
  const ready: (() => void)[] = [];
  let isEarlierSafe = true;
  for (const [index, entry] of entries.entries()) {
    if (index > 0 && !(isEarlierSafe && entry.isSafe)) break;
    isEarlierSafe = entry.isSafe;
    if (entry.start !== null) ready.push(entry.start);
    entry.start = null;
  }
  for (const start of ready) start();
}
