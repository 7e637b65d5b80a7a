/**
 * Takes what connections send in small pieces, in turns. WHY: Node's parser takes a block of 64 KiB at once, and a
 * block may contain 2,500 requests, or 10,000 chunks of one byte. The blocks of many connections would keep the server
 * from all other work for seconds, also after each connection was closed for its first requests.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { isUpgrade } from './connections.ts';

/** About 40 of the smallest requests, or 170 chunks of one byte: less than a millisecond of work. */
const PIECE_BYTES = 1024;
/** After this time of work other events come first. */
const TURN_MS = 5;
/** More than the longest head. WHY a limit: the parser skips empty lines before a request without a limit. */
const MAX_BYTES_BEFORE_REQUEST = 32 * 1024;

interface Input {
  readonly socket: Socket;
  /** Whether the client has shown a valid token. Connections with a token alternate with the others. */
  hasToken: boolean;
  /** The newest request. */
  request: IncomingMessage | null;
  /** The bytes that were parsed since a request was complete and before the next one. */
  idleBytes: number;
  /** What was received and not parsed yet. Null is the end. */
  readonly waiting: (Buffer | null)[];
  bodyLeft: number;
  /** Whether it waits until the body of its request has a reader. */
  isParked: boolean;
  /** Whether Node asked for more while something waited. */
  isReadWanted: boolean;
  push(chunk: Buffer | null): boolean;
  read(): void;
}

export class InputTurns {
  readonly #inputs = new WeakMap<Socket, Input>();
  readonly #known = new Set<Input>();
  readonly #others = new Set<Input>();
  #spentMs = 0;
  #isScheduled = false;
  #othersAreNext = false;

  /** ORDER: after the server's own listeners, which attach the parser. */
  constructor(server: Server, isTls = false) {
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => this.#add(socket));
    server.prependListener('request', (request) => {
      const input = this.#inputs.get(request.socket);
      if (input === undefined) return;
      input.request = request;
      input.idleBytes = 0;
      input.bodyLeft = Number(request.headers['content-length'] ?? 0) - PIECE_BYTES;
    });
  }

  /** Called when the client has shown a valid token. */
  prefer(socket: Socket): void {
    const input = this.#inputs.get(socket);
    if (input === undefined || input.hasToken) return;
    input.hasToken = true;
    if (this.#others.delete(input)) this.#known.add(input);
  }

  #add(socket: Socket): void {
    // A `data` listener makes Node pass the data through the stream, and no longer directly to the parser.
    socket.on('data', ignore).off('data', ignore);
    const input: Input = {
      socket,
      hasToken: false,
      request: null,
      idleBytes: 0,
      bodyLeft: 0,
      waiting: [],
      isParked: false,
      isReadWanted: false,
      push: socket.push.bind(socket),
      read: socket._read.bind(socket, 0),
    };
    this.#inputs.set(socket, input);
    socket.push = (chunk: Buffer | null) => this.#receive(input, chunk);
    socket._read = () => {
      if (input.waiting.length === 0) input.read();
      else input.isReadWanted = true;
    };
    socket.once('close', () => {
      this.#known.delete(input);
      this.#others.delete(input);
      input.waiting.length = 0;
    });
  }

  /** Returns false if Node must not read more for now. */
  #receive(input: Input, chunk: Buffer | null): boolean {
    const mayParse = input.waiting.length === 0 && this.#spentMs < TURN_MS && !isUnread(input) && !isHeld(input);
    if (mayParse && (chunk === null || chunk.length <= sizeOfPiece(input))) return this.#parse(input, chunk);
    input.waiting.push(chunk);
    this.#enqueue(input);
    return false;
  }

  #enqueue(input: Input): void {
    const { request, socket } = input;
    if (isHeld(input)) {
      if (input.isParked) return;
      input.isParked = true;
      socket.once('resume', () => {
        input.isParked = false;
        this.#enqueue(input);
      });
      return;
    }
    if (request !== null && isUnread(input)) {
      // WHY not parsed before it has a reader: each chunk that waits is an object.
      if (input.isParked) return;
      input.isParked = true;
      const wake = (): void => {
        request.off('resume', wake).off('newListener', wake);
        input.isParked = false;
        // ORDER: `newListener` is emitted before the listener is added.
        setImmediate(() => this.#enqueue(input));
      };
      request.on('resume', wake).on('newListener', wake);
      return;
    }
    if (input.waiting.length === 0) return;
    (input.hasToken ? this.#known : this.#others).add(input);
    this.#schedule();
  }

  #parse(input: Input, piece: Buffer | null): boolean {
    const startedAt = performance.now();
    if (isBetweenRequests(input)) input.idleBytes += piece?.length ?? 0;
    input.bodyLeft -= piece?.length ?? 0;
    const takesMore = input.push(piece);
    if (input.idleBytes > MAX_BYTES_BEFORE_REQUEST) input.socket.destroy();
    this.#spentMs += performance.now() - startedAt;
    this.#schedule();
    return takesMore;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#takeTurns());
  }

  #takeTurns(): void {
    this.#isScheduled = false;
    this.#spentMs = 0;
    for (let next = this.#next(); next !== null; next = this.#spentMs < TURN_MS ? this.#next() : null) {
      const { waiting, socket } = next;
      const [chunk = null] = waiting;
      const size = sizeOfPiece(next);
      if (socket.destroyed) waiting.length = 0;
      else if (chunk !== null && chunk.length > size) {
        waiting[0] = chunk.subarray(size);
        this.#parse(next, chunk.subarray(0, size));
      } else {
        waiting.shift();
        this.#parse(next, chunk);
      }
      if (waiting.length > 0) this.#enqueue(next);
      else if (next.isReadWanted && !socket.destroyed) {
        next.isReadWanted = false;
        next.read();
      }
    }
    if (this.#known.size > 0 || this.#others.size > 0) this.#schedule();
  }

  /** The connection whose turn it is. Those with a token and the others alternate. */
  #next(): Input | null {
    const [first, second] = this.#othersAreNext ? [this.#others, this.#known] : [this.#known, this.#others];
    this.#othersAreNext = !this.#othersAreNext;
    for (const inputs of [first, second]) {
      for (const input of inputs) {
        inputs.delete(input);
        return input;
      }
    }
    return null;
  }
}

const ignore = (): void => undefined;

/** Whether the body of the newest request waits for a reader. */
function isUnread({ request }: Input): boolean {
  if (request === null || request.complete || request.readableLength === 0) return false;
  if (request.headers['transfer-encoding'] === undefined) return false;
  return request.readableFlowing !== true && request.listenerCount('readable') === 0;
}

/** Whether Node has paused the socket until the client reads its responses. */
function isHeld({ socket, request }: Input): boolean {
  return socket.isPaused() && (request === null || !isUpgrade(request));
}

function isBetweenRequests({ request }: Input): boolean {
  return request === null || (request.complete && !isUpgrade(request));
}

function sizeOfPiece({ request, bodyLeft }: Input): number {
  if (request !== null && isUpgrade(request)) return Number.MAX_SAFE_INTEGER;
  return Math.max(PIECE_BYTES, bodyLeft);
}
