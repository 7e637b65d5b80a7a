/**
 * The requests of each connection that have no complete response yet: how many a client may send ahead, and that one
 * after the other takes effect. WHY not several with safe methods at a time, as RFC 9112, section 9.3.2, allows: their
 * responses would wait in memory for each other.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { RouteMeasures } from './request-measures.ts';

/** The request that is being answered, and eight that were sent without waiting for its response. */
const MAX_UNANSWERED = 9;

interface Entry {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly startedAt: number;
  /** Null before `enter`. */
  measures: RouteMeasures | null;
  /** Null before `enter`, and after it was called. */
  start: (() => void) | null;
}

export class RequestOrder {
  /** Oldest first. */
  readonly #unanswered = new WeakMap<Socket, Entry[]>();
  readonly #onAnswered: (socket: Socket, response: ServerResponse) => void;

  /**
   * Closes connections that send more requests ahead without reading responses. `onAnswered` is called when a response
   * ends.
   */
  constructor(server: Server, onAnswered: (socket: Socket, response: ServerResponse) => void) {
    this.#onAnswered = onAnswered;
    // It runs before the framework's own listener.
    server.prependListener('request', (request, response) => this.#add(request, response));
  }

  /**
   * Calls `start` when the earlier requests of the connection are answered. The end of the response is counted in
   * `measures`.
   */
  enter(request: IncomingMessage, measures: RouteMeasures, start: () => void): void {
    const entries = this.#unanswered.get(request.socket) ?? [];
    const entry = entries.find((each) => each.request === request);
    if (entry === undefined) throw new Error('the connection of the request is not tracked');
    entry.start = start;
    entry.measures = measures;
    startNext(entries);
  }

  isResponding(socket: Socket): boolean {
    const entries = this.#unanswered.get(socket) ?? [];
    return entries.some(({ request, response }) => request.complete || response.headersSent);
  }

  #add(request: IncomingMessage, response: ServerResponse): void {
    const entry: Entry = { request, response, startedAt: performance.now(), measures: null, start: null };
    const { socket } = request;
    const entries = this.#unanswered.get(socket) ?? [];
    if (entries.push(entry) === 1) this.#unanswered.set(socket, entries);
    if (entries.length > MAX_UNANSWERED) socket.destroy();
    // WHY not `once`: the event comes once, and removing the listener takes as long as the rest.
    response.on('close', () => {
      entries.splice(entries.indexOf(entry), 1);
      startNext(entries);
      this.#onAnswered(socket, response);
      const status = response.headersSent ? response.statusCode : 0;
      entry.measures?.ended(status, performance.now() - entry.startedAt);
    });
  }
}

function startNext([entry]: readonly Entry[]): void {
  const start = entry?.start ?? null;
  if (entry === undefined || start === null) return;
  entry.start = null;
  start();
}
