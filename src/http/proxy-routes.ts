/**
 * Base URLs: `/use/{path}/-/{rest}` makes the request that it receives with a credential, and streams both ways. The
 * upstream's response is proxied to the caller; errors made by the server carry `X-Leasehold-Error`. It runs before the
 * framework reads a body, so no byte of a body is buffered. SOURCE: docs/api.md, "Base URL"; docs/decisions.md,
 * "Brokered use".
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { HeaderPairs } from '../broker/protocol.ts';
import type { Context } from '../core/operation.ts';
import { ApiError, invalidRequest } from '../engine/errors.ts';
import { http } from '../platform/node-http.ts';
import { BASE_URL_PREFIX, baseUrlOf, parseBaseUrl } from '../vault/use/base-url.ts';
import { checkForwarded } from '../vault/use/misuse.ts';
import { parseMethod } from '../vault/use/target.ts';
import { type BaseUrlCall, findPlacement } from '../vault/use/use-leases.ts';
import { type ActiveRequest, type ReceivedRequest, useCredential } from '../vault/use/uses.ts';
import type { Vault } from '../vault/vault.ts';
import { serverUrlOf } from './browser-session.ts';
import { CoalescingBody } from './coalescing-body.ts';
import {
  allowLongWork,
  continueIfExpected,
  disconnectSignal,
  endConnection,
  HALF_CLOSED_MS,
  ignoreError,
  isUpgrade,
  lingerOnClose,
  SANDBOX_POLICY,
} from './connections.ts';
import { addressOf } from './register-routes.ts';
import type { RouteMeasures } from './request-measures.ts';
import { hasNamedToken, misplacedToken, withoutToken } from './use-token.ts';

// The headers of responses at base URLs. Headers that speak for the upstream's origin would now speak for this server's
// origin, which the console shares: to browsers, and to proxies in front of the server. Such headers are dropped.
// Others are kept, including unknown ones, because SDKs read headers of their service. SOURCE: docs/use.md, "Not for
// browsers".

/** Sent with every response at a base URL, including errors of the server. */
const BASE_URL_HEADERS = {
  'content-security-policy': SANDBOX_POLICY,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
  // A base URL may contain a token.
  'referrer-policy': 'no-referrer',
} as const;

const DROPPED: ReadonlySet<string> = new Set([
  // The server sets its own.
  ...Object.keys(BASE_URL_HEADERS),
  ...['pragma', 'expires', 'cdn-cache-control', 'surrogate-control', 'surrogate-key'],
  // The state of the origin in the browser: cookies, storage, sign-in, service workers.
  ...['set-cookie', 'set-cookie2', 'clear-site-data', 'service-worker-allowed', 'set-login', 'origin-agent-cluster'],
  ...['activate-storage-access', 'sec-session-registration', 'sec-session-challenge', 'use-as-dictionary'],
  ...['secure-session-registration', 'secure-session-challenge'],
  // How clients reach the origin.
  ...['alt-svc', 'strict-transport-security', 'public-key-pins', 'public-key-pins-report-only', 'expect-ct'],
  ...['accept-ch', 'accept-ch-lifetime', 'critical-ch', 'accept-signature', 'x-dns-prefetch-control'],
  // These set the abilities of a document.
  ...['content-security-policy-report-only', 'x-content-security-policy', 'x-webkit-csp', 'x-xss-protection'],
  ...['permissions-policy', 'permissions-policy-report-only', 'feature-policy', 'document-policy'],
  ...['document-policy-report-only', 'require-document-policy', 'integrity-policy', 'integrity-policy-report-only'],
  ...['cross-origin-opener-policy', 'cross-origin-opener-policy-report-only', 'cross-origin-embedder-policy'],
  ...['cross-origin-embedder-policy-report-only', 'document-isolation-policy', 'document-isolation-policy-report-only'],
  ...['refresh', 'default-style', 'sourcemap', 'x-sourcemap', 'speculation-rules', 'supports-loading-mode'],
  ...['no-vary-search', 'x-ua-compatible', 'x-permitted-cross-domain-policies', 'x-download-options'],
  // These let other origins read the response.
  'timing-allow-origin',
  // Reports and measurements.
  ...['nel', 'report-to', 'reporting-endpoints', 'observe-browsing-topics'],
  // Files and addresses that a proxy in front of the server would send in place of the response.
  ...['x-sendfile', 'x-lighttpd-send-file', 'x-litespeed-location', 'x-reproxy-url', 'x-accel-redirect'],
  ...['x-accel-expires', 'x-accel-limit-rate', 'x-accel-charset'],
]);
const DROPPED_PREFIXES = ['access-control-', 'attribution-reporting-', 'ad-auction-', 'shared-storage-'];

/** The headers or trailers without the dropped ones. WHY trailers too: proxies may merge them. */
function withoutOriginHeaders(headers: HeaderPairs): HeaderPairs {
  return headers.filter(([name]) => {
    const plain = name.toLowerCase();
    return !DROPPED.has(plain) && !DROPPED_PREFIXES.some((prefix) => plain.startsWith(prefix));
  });
}

// Requests.

/** WHY: fairness counts a body up to the limit. A streamed body costs its chunks, and has no limit. */
const COUNTED_BODY_BYTES = 32 * 1024;
/** Names and values in turn. */
const FIXED_HEADERS = Object.entries(BASE_URL_HEADERS).flat();
/** Connections whose request has no time limit, because its body is streamed; they have the limit for idle ones. */
const streaming = new WeakSet<Socket>();

export function isBaseUrl({ url }: IncomingMessage): boolean {
  return url?.startsWith(BASE_URL_PREFIX) === true;
}

export function mayTakeLonger(error: Error & { code?: string }, socket: Socket): boolean {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && streaming.has(socket);
}

export function errorHeaders({ raw, id }: Pick<FastifyRequest, 'raw' | 'id'>): Record<string, string> {
  return isBaseUrl(raw) ? { ...BASE_URL_HEADERS, 'x-leasehold-error': '1', 'x-leasehold-request': id } : {};
}

export const USE_ROUTE = `${BASE_URL_PREFIX}{path}/-/{rest}`;

export function registerProxyRoutes(app: FastifyInstance, vault: Vault, measures: RouteMeasures): void {
  const methods = http.METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE');
  for (const method of methods) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  app.route({
    method: methods,
    url: `${BASE_URL_PREFIX}*`,
    bodyLimit: COUNTED_BODY_BYTES,
    config: { measures },
    onRequest: (request, reply) => serve(vault, request, reply),
    handler: () => {
      throw new Error('a request to a base URL was not handled before its body was read');
    },
  });
}

async function serve(vault: Vault, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { auth, id: requestId } = request;
  if (auth === null) throw new Error('a base URL was reached without a caller');
  const context = { auth, requestId, remoteAddr: addressOf(request) };
  const call = await toCall(vault, request, context, reply.raw);
  allowLongWork(request.raw);
  streaming.add(request.raw.socket);
  reply.raw.once('close', () => streaming.delete(request.raw.socket));
  const response = await useCredential(vault, context, call).catch(hideMissing);
  const { admitted, head, body } = response;
  reply.header('x-leasehold-lease', admitted.leaseId);
  if (request.raw.socket.destroyed) {
    body.destroy();
    reply.hijack();
    return;
  }
  if (head.kind === 'error') {
    body.destroy();
    throw new ApiError('UPSTREAM_FAILED', `The upstream could not be used: ${head.failure}.`);
  }
  reply.hijack();
  const ours = ['X-Leasehold-Lease', admitted.leaseId, 'X-Leasehold-Request', requestId];
  const headers = [...withoutOriginHeaders(head.headers).flat(), ...FIXED_HEADERS, ...ours];
  // Not awaited: from here on the framework has no part in the response.
  if (head.status === 101) void switchProtocols(request.raw.socket, headers, response);
  else void send(request.raw, reply.raw, { status: head.status, headers }, response);
}

/** A credential that does not exist looks like one that the caller may not use. */
function hideMissing(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'NOT_FOUND') throw error;
  throw new ApiError('ACCESS_DENIED', 'Access denied: the credential cannot be used.');
}

function parseCall({ raw, method }: FastifyRequest): Pick<BaseUrlCall, 'path' | 'request'> {
  const { credentialPath: path, ...address } = parseBaseUrl(raw.url ?? '');
  return { path, request: { ...address, method: parseMethod(method) } };
}

/** The request's target, before its token is known; null if it is malformed, which `toCall` rejects. */
export function readBaseUrl(request: FastifyRequest): BaseUrlCall | null {
  try {
    return { ...parseCall(request), requestId: request.id, remoteAddr: addressOf(request) };
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

async function toCall(
  vault: Vault,
  request: FastifyRequest,
  context: Context,
  response: ServerResponse,
): Promise<ReceivedRequest> {
  const { raw, token } = request;
  const signal = disconnectSignal(raw, response, isUpgrade(raw) ? HALF_CLOSED_MS : null);
  const { path, request: asked } = parseCall(request);
  const placement = hasNamedToken(raw) ? null : await findPlacement(vault, path);
  const { headers, query, misplaced } = withoutToken(raw, token, asked.query, placement);
  if (misplaced.length > 0) {
    await checkForwarded(vault, context, misplaced, { path, request: asked });
    throw misplacedToken();
  }
  const bodyLength = bodyLengthOf(raw);
  if (isUpgrade(raw) && bodyLength !== 0) throw invalidRequest('Upgrade', 'must not be sent with a body');
  return {
    path,
    request: { ...asked, query },
    ttlSeconds: null,
    purpose: null,
    headers,
    openBody() {
      continueIfExpected(raw, response);
      if (isUpgrade(raw)) return raw.socket;
      return bodyLength === 0 ? null : new CoalescingBody(raw);
    },
    bodyLength,
    isUpgrade: isUpgrade(raw),
    baseUrl: baseUrlOf(serverUrlOf(request), path),
    signal,
  };
}

/** The length in bytes; null for a chunked body. */
function bodyLengthOf({ headers }: IncomingMessage): number | null {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null;
}

/** A response that breaks off closes the connection, so that the client cannot take it for a complete one. */
async function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers }: { status: number; headers: readonly string[] },
  { body, trailers }: ActiveRequest,
): Promise<void> {
  const { socket } = request;
  try {
    if (!request.complete && !isUpgrade(request)) {
      response.shouldKeepAlive = false;
      lingerOnClose(socket);
    }
    // The head and the bytes that arrive with it are one write. WHY not the response: before Node 26.9, one that is
    // corked writes its last chunk before the chunks that wait.
    socket.cork();
    setImmediate(() => socket.uncork());
    response.writeHead(status, [...headers]);
    response.flushHeaders();
    if (!(await copy(body, response))) throw new Error('the response broke off');
    if (response.chunkedEncoding)
      response.addTrailers(withoutOriginHeaders(trailers()).map(([name, value]): [string, string] => [name, value]));
    response.end();
  } catch {
    body.destroy();
    socket.uncork();
    socket.destroy();
  }
}

/**
 * Resolves to true when all of the body is written, and to false when it breaks off or the client has left. The target
 * is not ended. WHY not `pipeline`: it makes two exceptions for each response that is complete.
 */
function copy(body: Readable, target: Writable): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  if (body.destroyed) resolve(false);
  body.on('end', () => resolve(true));
  for (const stream of [body, target]) stream.on('error', ignoreError).on('close', () => resolve(false));
  body.pipe(target, { end: false });
  return promise;
}

async function switchProtocols(socket: Socket, headers: readonly string[], { body }: ActiveRequest): Promise<void> {
  const lines = Array.from({ length: headers.length / 2 }, (_, at) => `${headers[2 * at]}: ${headers[2 * at + 1]}`);
  socket.write(`${['HTTP/1.1 101 Switching Protocols', ...lines].join('\r\n')}\r\n\r\n`, 'latin1');
  if (await copy(body, socket)) {
    endConnection(socket);
    return;
  }
  body.destroy();
  socket.destroy();
}
