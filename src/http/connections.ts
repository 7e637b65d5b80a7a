/**
 * Connections: their timeouts, the responses to requests that Node rejects or closes itself, WebSocket upgrades, and
 * the end of a connection whose request body is not read, because the response is sent early. SOURCE: RFC 9112, section
 * 9.6.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as PlainServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { ApiError } from '../engine/errors.ts';
import { http } from '../platform/node-http.ts';
import { BASE_URL_PREFIX } from '../vault/use/base-url.ts';
import { defaultError, toErrorResponse } from './errors.ts';

export interface CallerTimeouts {
  /** Limits a TLS handshake too, and a socket that receives nothing. */
  readonly headersMs: number;
  readonly requestMs: number;
  readonly checkIntervalMs: number;
  /** Maximum time without progress: longer than the verification of millions of entries. */
  readonly silenceMs: number;
}

// SOURCE: docs/decisions.md, "Requests".
export const CALLER_TIMEOUTS: CallerTimeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  checkIntervalMs: 1000,
  silenceMs: 300_000,
};
const KEEP_ALIVE_TIMEOUT_MS = 60_000;
/** Longer than the broker waits for an upstream. */
const LONG_WORK_MS = 660_000;
/** No document at the server's origin but the console may run scripts, load anything, or share its origin. */
export const SANDBOX_POLICY = "sandbox; default-src 'none'";
/** WHY one for all: an abort without a reason creates an error with its stack for each request. */
export const CLIENT_DISCONNECTED = new Error('the client has disconnected');

export function setTimeouts(server: Server, { headersMs, requestMs, silenceMs }: CallerTimeouts): void {
  server.headersTimeout = headersMs;
  server.requestTimeout = requestMs;
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  // A response that the client reads slowly counts as progress.
  server.timeout = silenceMs;
}

/** Maximum time for the rest of a response, at most the buffers of a socket. */
const ENDING_MS = 5000;

/**
 * Closes a connection that Node has handed over, as soon as all is sent, or after a limit. WHY the limit: Node never
 * completes a write to a TLS client that has ended its side without a close_notify and then resets the connection, and
 * has removed its own limit from the socket. WHY a timer: the time-out of a socket begins again with each byte that a
 * client sends.
 */
export function endConnection(socket: Socket): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), ENDING_MS).unref();
  socket.once('close', () => clearTimeout(timer));
  socket.destroySoon();
}

/** Node closes a stream after its error, so an error needs no other reaction. */
export const ignoreError = (): void => undefined;

/**
 * Keeps errors of sockets and of `accept` from ending the process, which an `error` event without a listener does. WHY
 * on every connection: Node removes its own listener from a socket that it hands over (`connect`, `upgrade`), and the
 * client may reset it at any moment. ORDER: before any other listener of the server.
 */
export function ignoreSocketErrors(server: PlainServer, onAcceptError: (error: Error) => void): void {
  // The second event carries the TLS socket, which is another object.
  for (const event of ['connection', 'secureConnection'])
    server.prependListener(event, (socket: Socket) => socket.on('error', ignoreError));
  server.on('error', (error) => {
    // Otherwise it is an error of `listen`, which rejects.
    if (server.listening) onAcceptError(error);
  });
}

/**
 * Responds to requests that Node would otherwise close or reject without a body. CONNECT behind a request that is not
 * answered yet closes the connection: the client would take the error for the response to that request.
 */
export function handleConnectAndExpect(
  server: Server,
  newRequestId: () => string,
  isResponding: (socket: Socket) => boolean,
): void {
  server.on('connect', ({ socket }: IncomingMessage, stream: Duplex) => {
    // If the request has a body, the stream is another object than the socket.
    stream.on('error', ignoreError);
    if (isResponding(socket)) return void socket.destroy();
    const error = new ApiError('METHOD_NOT_ALLOWED', 'No address takes CONNECT.');
    writeError(socket, error, newRequestId(), ['Allow: GET, POST, PUT, DELETE']);
  });
  // `100-continue` is met when the body is about to be read; any other expectation is ignored.
  for (const event of ['checkContinue', 'checkExpectation']) {
    server.on(event, (request, response) => server.emit('request', request, response));
  }
}

/** Sends `100 Continue` to a client that waits for it before it sends the body. */
export function continueIfExpected({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (httpVersion === '1.1' && /(?:^|\W)100-continue(?:$|\W)/i.test(headers.expect ?? '')) response.writeContinue();
}

/** Lets a request make no progress for longer than others. Node sets the usual limit when the connection is idle. */
export function allowLongWork({ socket }: IncomingMessage): void {
  socket.setTimeout(LONG_WORK_MS);
}

/** A client that has ended its side still receives the responses to its previous requests. */
export function allowHalfOpen(server: Server): void {
  // Not in the types, and not documented: Node ends the socket otherwise.
  Reflect.set(server, 'httpAllowHalfOpen', true);
}

/**
 * A client of a list or of a WebSocket that ends its side still receives the data that is complete within this time.
 */
export const HALF_CLOSED_MS = 1000;

/**
 * Aborted when the client disconnects, or ends its side of the connection, which looks the same, before it has the
 * whole response. With `halfClosedMs`, a client that ends its side, or had ended it before, has this time left.
 */
export function disconnectSignal(
  { socket }: IncomingMessage,
  response: ServerResponse,
  halfClosedMs: number | null = null,
): AbortSignal {
  const left = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const ended = (): void => {
    if (halfClosedMs === null) socket.destroy();
    else timer = setTimeout(() => socket.destroy(), halfClosedMs).unref();
  };
  const closed = (): void => {
    socket.off('end', ended);
    clearTimeout(timer);
    if (!response.writableFinished) left.abort(CLIENT_DISCONNECTED);
  };
  socket.once('end', ended);
  if (halfClosedMs !== null && socket.readableEnded) ended();
  // The client may have left before the caller was authenticated.
  if (response.closed || socket.destroyed) closed();
  else response.once('close', closed);
  return left.signal;
}

/**
 * Responds on the socket to input that the parser rejects, which has no request and no reply. WHY not while a response
 * is in progress (`isResponding`): the client would take the error for a part of it. The connection is closed instead.
 */
export function writeClientError(
  error: Error & { code?: string },
  socket: Socket,
  requestId: string,
  isResponding: boolean,
): void {
  const isHandshake = /^(ERR_TLS|ERR_SSL|EPROTO)/.test(error.code ?? '');
  if (error.code === 'ECONNRESET' || isHandshake || !socket.writable || isResponding) {
    socket.destroy();
    return;
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') writeError(socket, defaultError('HEADERS_TOO_LARGE'), requestId);
  else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') writeError(socket, defaultError('REQUEST_TIMEOUT'), requestId);
  else writeError(socket, defaultError('INVALID_REQUEST'), requestId);
}

export function writeError(socket: Socket, error: ApiError, requestId: string, more: readonly string[] = []): void {
  const { status, body, headers } = toErrorResponse(error);
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `Content-Security-Policy: ${SANDBOX_POLICY}`,
    `X-Request-Id: ${requestId}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...more,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
  endConnection(socket);
}

/**
 * Time for the client to read the response. Closing a socket with unread bytes resets the connection, which can discard
 * the response.
 */
const LINGER_MS = 250;

export function hasUnreadBody({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Must be called before the response's headers are written. */
export function closeUnread(request: IncomingMessage, reply: FastifyReply): void {
  const { socket } = request;
  reply.header('connection', 'close');
  request.pause();
  // WHY: Node reads and drops a body that was not consumed; one read of no bytes marks it as consumed.
  request.read(0);
  lingerOnClose(socket);
}

export function lingerOnClose(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}

// WebSocket upgrades, at base URLs only: the request receives a response like any other, so that it is guarded,
// authenticated and, if it is rejected, answered in the same way. An `Upgrade` header elsewhere is ignored.

const upgrades = new WeakSet<IncomingMessage>();

/** An option of Node's servers: whether a request with an `Upgrade` header is passed to the event `upgrade`. */
export function shouldUpgrade({ method, url, headers }: IncomingMessage): boolean {
  const isWebSocket = headers.upgrade?.toLowerCase() === 'websocket';
  return isWebSocket && method === 'GET' && url?.startsWith(BASE_URL_PREFIX) === true;
}

/** Whether the request asks for a WebSocket; its socket is then no longer read as HTTP. */
export function isUpgrade(request: IncomingMessage): boolean {
  return upgrades.has(request);
}

export function handleUpgrades(server: Server): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', ignoreError);
    const response = new http.ServerResponse(request);
    try {
      response.assignSocket(request.socket);
    } catch {
      // A previous request of the connection has no complete response.
      socket.destroy();
      return;
    }
    if (head.length > 0) socket.unshift(head);
    upgrades.add(request);
    response.shouldKeepAlive = false;
    // WHY not `finish`: a write to a TLS client that resets the connection may never complete.
    response.on('prefinish', () => endConnection(request.socket));
    server.emit('request', request, response);
  });
}
