/** Connections: how many, how long, and what is answered where there is no request yet. */
import { type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { Fault } from '../core/fault.ts';
import { standardFault, toErrorAnswer } from './faults.ts';

/** How long a caller may take. Tests shorten it. */
export interface CallerTimeouts {
  /** Also for a TLS handshake, and for a socket that receives nothing. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** How often Node checks the two. */
  readonly checkIntervalMs: number;
}

// SOURCE: decisions, "HTTP".
export const CALLER_TIMEOUTS: CallerTimeouts = { headersMs: 10_000, requestMs: 30_000, checkIntervalMs: 1000 };
const KEEP_ALIVE_TIMEOUT_MS = 60_000;
const MAX_CONNECTIONS = 4096;
const MAX_CONNECTIONS_PER_ADDRESS = 500;
/** Requests on one connection that were sent without waiting for the answers before. */
const MAX_PIPELINED = 8;

// SOURCE: security, "Node's HTTP defaults".
export function setTimeouts(server: Server, { headersMs, requestMs }: CallerTimeouts): void {
  server.headersTimeout = headersMs;
  server.requestTimeout = requestMs;
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
}

/** Answers what Node by itself would close or refuse without a word. */
export function answerUnusual(server: Server, newRequestId: () => string): void {
  // What asks for a tunnel has no address of ours.
  server.on('connect', (_request, socket: Socket) => {
    const fault = new Fault('METHOD_NOT_ALLOWED', 'No address takes CONNECT.');
    writeFault(socket, fault, newRequestId(), ['Allow: GET, POST, PUT, DELETE']);
  });
  // An expectation that is not 100-continue is ignored: the request is answered as it is.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/** Refuses with 503 what is over the limits. */
export function limitConnections(server: Server, newRequestId: () => string): void {
  const byAddress = new Map<string, number>();
  let total = 0;
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? 'local';
    const count = byAddress.get(address) ?? 0;
    // A Unix socket has no addresses to tell apart.
    const limit = socket.remoteAddress === undefined ? MAX_CONNECTIONS : MAX_CONNECTIONS_PER_ADDRESS;
    if (total >= MAX_CONNECTIONS || count >= limit) {
      writeFault(socket, standardFault('UNAVAILABLE'), newRequestId());
      return;
    }
    total += 1;
    byAddress.set(address, count + 1);
    socket.once('close', () => {
      total -= 1;
      const left = (byAddress.get(address) ?? 1) - 1;
      if (left > 0) byAddress.set(address, left);
      else byAddress.delete(address);
    });
  });
}

/**
 * Cuts off who sends request after request without taking the answers: one read of such a connection would hold up everybody.
 * What was parsed already of a connection that is gone is for the guard to drop.
 */
export function limitPipelining(server: Server): void {
  const waiting = new WeakMap<Socket, number>();
  // Before the framework's own listener.
  server.prependListener('request', ({ socket }, response) => {
    // Only an answer that stands behind another one has no socket yet.
    if (response.socket !== null) return;
    const count = (waiting.get(socket) ?? 0) + 1;
    if (count > MAX_PIPELINED) socket.destroy();
    waiting.set(socket, count);
    response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1));
  });
}

/** What the parser refuses has no request and no reply: it is answered on the socket. */
export function writeClientError(error: Error & { code?: string }, socket: Socket, requestId: string): void {
  // An answer that is still under way must not be mistaken: what comes after it on the wire is cut off without a word.
  const answer: unknown = Reflect.get(socket, '_httpMessage');
  const isAnswering = answer instanceof ServerResponse && (answer.req.complete || answer.headersSent);
  const isHandshake = /^(ERR_TLS|ERR_SSL|EPROTO)/.test(error.code ?? '');
  if (error.code === 'ECONNRESET' || isHandshake || !socket.writable || isAnswering) {
    socket.destroy();
    return;
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') writeFault(socket, standardFault('HEADERS_TOO_LARGE'), requestId);
  else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') writeFault(socket, standardFault('REQUEST_TIMEOUT'), requestId);
  else writeFault(socket, standardFault('INVALID_REQUEST'), requestId);
}

function writeFault(socket: Socket, fault: Fault, requestId: string, more: readonly string[] = []): void {
  const { status, body, headers } = toErrorAnswer(fault);
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...more,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}
