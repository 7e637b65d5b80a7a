/**
 * The requests of each connection that have no complete response yet: how many a client may send ahead, and that one
 * after the other takes effect. WHY not several with safe methods at a time, as RFC 9112, section 9.3.2, allows: their
 * responses would wait in memory for each other. The memory of responses that clients do not read is bounded.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { RouteMeasures } from './request-measures.ts';
import { callerKey } from './request-scheduler.ts';

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

const MIB = 1024 * 1024;

interface UnreadLimits {
  readonly bytesPerCaller: number;
  readonly bytesInTotal: number;
  readonly checkMs: number;
}

const UNREAD_LIMITS: UnreadLimits = { bytesPerCaller: 64 * MIB, bytesInTotal: 512 * MIB, checkMs: 100 };

/** The rows of a list that were read from the store and are not sent yet: about as large as one step can be. */
const LIST_STEP_BYTES = 2 * MIB;

interface Held {
  readonly response: ServerResponse;
  readonly startedAt: number;
  readonly bytes: number;
  readonly caller: string;
}

/**
 * Bounds the memory of responses that authenticated clients do not read. A caller over its limit loses the connections
 * whose responses have waited longest, and so do all callers if they exceed the total. WHY not other clients: public
 * routes return small responses, or files that all clients share.
 */
export class UnreadResponses {
  readonly #answering: () => Iterable<Answering>;
  readonly #onClosed: (caller: string, connections: number) => void;
  readonly #limits: UnreadLimits;
  readonly #timer: NodeJS.Timeout;

  /**
   * WHY each check walks the connections: a collection of all responses costs 15 % of a retrieval in garbage
   * collection.
   */
  constructor(
    answering: () => Iterable<Answering>,
    onClosed: (caller: string, connections: number) => void,
    limits = UNREAD_LIMITS,
  ) {
    this.#answering = answering;
    this.#onClosed = onClosed;
    this.#limits = limits;
    this.#timer = setInterval(() => this.#check(), limits.checkMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const held: Held[] = [];
    for (const { response, startedAt, fastifyRequest } of this.#answering()) {
      // WHY a list also counts while nothing waits to be sent: it waits for its turn, with rows in memory.
      const bytes = response.writableLength + (fastifyRequest.sendsList ? LIST_STEP_BYTES : 0);
      if (bytes > 0 && fastifyRequest.auth !== null)
        held.push({ response, startedAt, bytes, caller: callerKey(fastifyRequest) });
    }
    held.sort((a, b) => a.startedAt - b.startedAt);
    const byCaller = new Map<string, number>();
    let total = 0;
    for (const { caller, bytes } of held) {
      byCaller.set(caller, (byCaller.get(caller) ?? 0) + bytes);
      total += bytes;
    }
    const { bytesPerCaller, bytesInTotal } = this.#limits;
    const closed = new Map<string, number>();
    const close = ({ response, caller, bytes }: Held): void => {
      byCaller.set(caller, (byCaller.get(caller) ?? 0) - bytes);
      total -= bytes;
      closed.set(caller, (closed.get(caller) ?? 0) + 1);
      response.destroy();
    };
    const kept = held.filter((each) => {
      const isOver = (byCaller.get(each.caller) ?? 0) > bytesPerCaller;
      if (isOver) close(each);
      return !isOver;
    });
    for (const each of kept) {
      if (total <= bytesInTotal) break;
      close(each);
    }
    for (const [caller, connections] of closed) this.#onClosed(caller, connections);
  }
}
