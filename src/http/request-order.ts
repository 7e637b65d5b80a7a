/**
 * The requests of each connection that have no complete response yet: how many a client may send ahead, and that one
 * after the other takes effect. WHY not several with safe methods at a time, as RFC 9112, section 9.3.2, allows: their
 * responses would wait in memory for each other.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { RouteMeasures } from './request-measures.ts';

/** The request that is being answered, and eight that were sent without waiting for its response. */
const MAX_UNANSWERED = 9;

/** A request that is being answered. */
export interface Answering {
  readonly response: ServerResponse;
  readonly startedAt: number;
  readonly fastifyRequest: FastifyRequest;
}

interface Entry {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly startedAt: number;
  /** Null before `enter`. */
  fastifyRequest: FastifyRequest | null;
  /** Null before `enter`. */
  measures: RouteMeasures | null;
  /** Null before `enter`, and after it was called. */
  start: (() => void) | null;
}

export class RequestOrder {
  /** Oldest first. */
  readonly #unanswered = new Map<Socket, Entry[]>();
  readonly #onAnswered: (socket: Socket) => void;

  /**
   * Closes connections that send more requests ahead without reading responses. `onAnswered` is called when a response
   * ends.
   */
  constructor(server: Server, onAnswered: (socket: Socket) => void) {
    this.#onAnswered = onAnswered;
    // It runs before the framework's own listener.
    server.prependListener('request', (request, response) => this.#add(request, response));
  }

  /**
   * Calls `start` when the previous requests of the connection are answered. The end of the response is counted in
   * `measures`.
   */
  enter(fastifyRequest: FastifyRequest, measures: RouteMeasures, start: () => void): void {
    const entries = this.#unanswered.get(fastifyRequest.raw.socket) ?? [];
    const entry = entries.find(({ request }) => request === fastifyRequest.raw);
    if (entry === undefined) throw new Error('the connection of the request is not tracked');
    entry.fastifyRequest = fastifyRequest;
    entry.start = start;
    entry.measures = measures;
    startNext(entries);
  }

  /** The request of each connection that is being answered. */
  *answering(): Generator<Answering> {
    for (const [entry] of this.#unanswered.values()) {
      const fastifyRequest = entry?.fastifyRequest ?? null;
      if (entry !== undefined && fastifyRequest !== null)
        yield { response: entry.response, startedAt: entry.startedAt, fastifyRequest };
    }
  }

  isResponding(socket: Socket): boolean {
    const entries = this.#unanswered.get(socket) ?? [];
    return entries.some(({ request, response }) => request.complete || response.headersSent);
  }

  #add(request: IncomingMessage, response: ServerResponse): void {
    const entry: Entry = {
      request,
      response,
      startedAt: performance.now(),
      fastifyRequest: null,
      measures: null,
      start: null,
    };
    const { socket } = request;
    const entries = this.#entriesOf(socket);
    entries.push(entry);
    if (entries.length > MAX_UNANSWERED) socket.destroy();
    // WHY not `once`: the event is emitted once, and removing the listener takes as long as the rest.
    response.on('close', () => {
      entries.splice(entries.indexOf(entry), 1);
      startNext(entries);
      this.#onAnswered(socket);
      const status = response.headersSent ? response.statusCode : 0;
      entry.measures?.ended(status, performance.now() - entry.startedAt);
    });
  }

  #entriesOf(socket: Socket): Entry[] {
    const known = this.#unanswered.get(socket);
    if (known !== undefined) return known;
    const entries: Entry[] = [];
    // WHY not for a closed connection: its event has passed, so nothing would remove the entry.
    if (!socket.destroyed) {
      this.#unanswered.set(socket, entries);
      socket.once('close', () => this.#unanswered.delete(socket));
      // WHY: Node reports a body that broke off, but not the body of a request with the header Upgrade.
      socket.once('end', () => {
        if (socket.writable && entries.some(({ request }) => !request.complete)) socket.destroy();
      });
    }
    return entries;
  }
}

function startNext([entry]: readonly Entry[]): void {
  const start = entry?.start ?? null;
  if (entry === undefined || start === null) return;
  entry.start = null;
  start();
}
