/** Connections: how many, how long, and what is answered where there is no request yet. */
import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from '../core/errors.ts';
import { defaultError, toErrorAnswer } from './errors.ts';

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

// SOURCE: security, "Node's HTTP defaults".
export function setTimeouts(server: Server, { headersMs, requestMs }: CallerTimeouts): void {
  server.headersTimeout = headersMs;
  server.requestTimeout = requestMs;
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
}

/** Answers what Node by itself would close or refuse without a word. */
export function handleConnectAndExpect(server: Server, newRequestId: () => string): void {
  // What asks for a tunnel has no address of ours.
  server.on('connect', (_request, socket: Socket) => {
    const fault = new ApiError('METHOD_NOT_ALLOWED', 'No address takes CONNECT.');
    writeFault(socket, fault, newRequestId(), ['Allow: GET, POST, PUT, DELETE']);
  });
  // An expectation that is not 100-continue is ignored; that one is met when the body is about to be read.
  for (const event of ['checkContinue', 'checkExpectation']) {
    server.on(event, (request, response) => server.emit('request', request, response));
  }
}

/** Sends `100 Continue` to a client that waits for it before it sends the body. */
export function continueIfExpected({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (httpVersion === '1.1' && /(?:^|\W)100-continue(?:$|\W)/i.test(headers.expect ?? '')) response.writeContinue();
}

/** A client that has ended its side still gets the responses to what it sent before. */
export function answerHalfClosed(server: Server): void {
  // Not in the types, and not documented: Node ends the socket otherwise.
  Reflect.set(server, 'httpAllowHalfOpen', true);
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
  if (error.code === 'HPE_HEADER_OVERFLOW') writeFault(socket, defaultError('HEADERS_TOO_LARGE'), requestId);
  else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') writeFault(socket, defaultError('REQUEST_TIMEOUT'), requestId);
  else writeFault(socket, defaultError('INVALID_REQUEST'), requestId);
}

export function writeFault(socket: Socket, fault: ApiError, requestId: string, more: readonly string[] = []): void {
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
