/**
 * The HTTP server. The path of a request: guard (target, headers, Host, state) → route → authenticate → read and parse
 * the body → validate → handle → serialise. Every response is a reply of the route table or an error of the closed
 * list.
 */

import type { SecureContextOptions } from 'node:tls';
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';
import type { ServiceStatus } from '../api/types.ts';
import type { AuthContext } from '../core/identity.ts';
import type { Permission } from '../core/permissions.ts';
import { ApiError } from '../engine/errors.ts';
import { OVERLOADED } from '../ledger/fair-queue.ts';
import type { Vault } from '../vault/vault.ts';
import { hasAuthentication, rejectBrowser } from './browser-session.ts';
import { CoalescingBody } from './coalescing-body.ts';
import { ConnectionLimits } from './connection-limits.ts';
import {
  allowHalfOpen,
  type CallerTimeouts,
  CLIENT_DISCONNECTED,
  closeUnread,
  continueIfExpected,
  handleConnectAndExpect,
  handleUpgrades,
  hasUnreadBody,
  ignoreSocketErrors,
  SANDBOX_POLICY,
  setTimeouts,
  shouldUpgrade,
  writeClientError,
} from './connections.ts';
import { addConsole, isConsolePage } from './console.ts';
import { defaultError, isAbandoned, toApiError, toErrorResponse } from './errors.ts';
import { checkRequest } from './guard.ts';
import { checkPermission, findStrayToken, identifyCaller } from './identify-caller.ts';
import { InputTurns } from './input-turns.ts';
import { errorHeaders, isBaseUrl, mayTakeLonger, registerProxyRoutes, USE_ROUTE } from './proxy-routes.ts';
import { addRoutes } from './register-routes.ts';
import type { RequestLog, RequestMeasures, RouteMeasures } from './request-measures.ts';
import { RequestOrder, UnreadResponses } from './request-order.ts';
import { callerKey, LargeBodies, MAX_BODY_BYTES, RequestScheduler } from './request-scheduler.ts';
import type { MetricsPage, ProveServer } from './route.ts';
import { isInexactTarget, routingError } from './routes/route-table.ts';
import { parseJson } from './strict-json.ts';

export interface HttpParts {
  readonly vault: Vault;
  readonly status: () => ServiceStatus;
  readonly log: RequestLog;
  readonly newRequestId: () => string;
  /** Whether only some Hosts are allowed: `localhost`, IP literals and `publicNames`. */
  readonly checksHost: boolean;
  readonly trustedProxies: readonly string[];
  readonly tls: SecureContextOptions | null;
  readonly prove: ProveServer;
  readonly metrics: MetricsPage;
  readonly measures: RequestMeasures;
  /** The names at which passkeys work, in lower case. */
  readonly publicNames: ReadonlySet<string>;
  readonly timeouts: CallerTimeouts;
}

const MAX_HEADER_BYTES = 16 * 1024;

export type HttpServer = FastifyInstance;

export function createServer(parts: HttpParts): HttpServer {
  const { tls, trustedProxies, newRequestId, timeouts, measures } = parts;
  const http = {
    maxHeaderSize: MAX_HEADER_BYTES,
    requireHostHeader: false,
    connectionsCheckingInterval: timeouts.checkIntervalMs,
    shouldUpgradeCallback: shouldUpgrade,
  };
  const options = {
    logger: false,
    exposeHeadRoutes: false,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: timeouts.requestMs,
    requestIdHeader: false,
    genReqId: newRequestId,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    routerOptions: { maxParamLength: 4096 },
    clientErrorHandler: (error, socket) => {
      if (mayTakeLonger(error, socket)) return;
      writeClientError(error, socket, newRequestId(), order.isResponding(socket));
    },
    frameworkErrors: (error, request, reply) => void sendError(parts, error, request, reply),
  } satisfies FastifyServerOptions;
  const app: HttpServer =
    tls === null
      ? fastify({ ...options, http })
      : // Only members that an HTTPS server shares with an HTTP server are used.
        (fastify({
          ...options,
          https: { ...http, ...tls, handshakeTimeout: timeouts.headersMs },
        }) as unknown as HttpServer);
  ignoreSocketErrors(app.server, (error) => parts.log.acceptFailed(error));
  const connections = new ConnectionLimits(app.server, newRequestId);
  measures.openConnections = () => connections.total;
  setTimeouts(app.server, timeouts);
  const inputs = new InputTurns(app.server, tls !== null);
  const order = new RequestOrder(app.server, (socket) => connections.recordIdle(socket));
  const unread = new UnreadResponses(
    () => order.answering(),
    (caller, count) => parts.log.unreadClosed(caller, count),
  );
  app.addHook('onClose', () => unread.stop());
  allowHalfOpen(app.server);
  handleConnectAndExpect(app.server, newRequestId, (socket) => order.isResponding(socket));
  handleUpgrades(app.server);

  app.decorateRequest('auth', null);
  app.decorateRequest('token', '');
  app.decorateRequest('isBrowserSession', false);
  app.decorateRequest('sendsList', false);
  const starts = new RequestScheduler();
  const largeBodies = new LargeBodies();
  app.addHook('onRequest', (request, reply, done) => {
    setCommonHeaders(request, reply);
    // No client reads a response on a connection that is closed or closing, so the request is not decided.
    const isGone = (): boolean => request.raw.socket.destroyed || request.raw.socket.writableEnded;
    if (isGone()) return void reply.hijack();
    const start = (act: () => void): void => {
      // WHY it catches: it may run in a timer, when the vault has been locked.
      const begin = (): void => {
        try {
          if (isGone()) reply.hijack();
          else act();
        } catch (error) {
          done(toError(error));
        }
      };
      if (!starts.run(request, begin)) done(OVERLOADED);
    };
    const { config } = request.routeOptions;
    order.enter(request, config.measures ?? measures.unrouted, () => {
      try {
        checkRequest(request.raw, parts, config);
        const isUse = isBaseUrl(request.raw);
        if (isUse) rejectBrowser(request.raw);
        const isUnknown =
          request.is404 || (!isUse && !isConsolePage(request.url) && isInexactTarget(request.url, request.method));
        const error = isUnknown ? routingError(request.url, reply) : undefined;
        const needsNoToken =
          config.permission === null && !(config.takesSession === true && hasAuthentication(request));
        if (isUnknown || needsNoToken) {
          const stray = findStrayToken(parts.vault, request);
          return start(() => (stray === null ? done(error) : stray().then(() => done(error), done)));
        }
        const found = identifyCaller(parts.vault, request, isUse);
        if (typeof found === 'function') return start(() => found().then((auth) => admit(auth), done));
        admit(found);
      } catch (error) {
        const thrown = toError(error);
        start(() => done(thrown));
      }
    });
    function admit(auth: AuthContext): void {
      request.auth = auth;
      connections.protect(request.raw.socket, auth);
      inputs.prefer(request.raw.socket);
      start(() => checkPermission(parts.vault, request, done));
    }
  });
  // Runs before the body is read.
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (!hasUnreadBody(request.raw)) return done(null, payload);
    largeBodies.enter(callerKey(request), request, reply.raw, () => {
      continueIfExpected(request.raw, reply.raw);
      const isChunked = request.headers['transfer-encoding'] !== undefined;
      done(null, isChunked ? new CoalescingBody(request.raw) : payload);
    });
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (hasUnreadBody(request.raw)) closeUnread(request.raw, reply);
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
    try {
      if ((request.headers['content-encoding'] ?? 'identity') !== 'identity')
        throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Content-Encoding: send the body without compression.');
      done(null, bytes.length === 0 ? undefined : parseJson(toBytes(bytes)));
    } catch (error) {
      done(toError(error));
    }
  });
  // An empty body may have any content type.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => {
    done(bytes.length === 0 ? null : defaultError('UNSUPPORTED_MEDIA_TYPE'), undefined);
  });
  app.setErrorHandler((error: FastifyError, request, reply) => sendError(parts, error, request, reply));
  app.setNotFoundHandler((request, reply) => sendError(parts, routingError(request.url, reply), request, reply));
  addRoutes(app, parts);
  addConsole(app, measures);
  registerProxyRoutes(app, parts.vault, measures.of('*', USE_ROUTE));
  return app;
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({
    'x-request-id': request.id,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // The console's pages have a policy of their own; nothing else here is a page.
    'content-security-policy': SANDBOX_POLICY,
  });
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error('thrown value');
}

function toBytes(body: string | Buffer): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

function sendError({ log, measures }: HttpParts, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  if (error === CLIENT_DISCONNECTED || isAbandoned(error, request.raw)) return reply.hijack();
  const known = toApiError(error);
  if (known === null) log.unexpectedError(error, request.id);
  // A request that the framework itself rejects did not pass the `onRequest` hook.
  setCommonHeaders(request, reply);
  reply.headers(errorHeaders(request));
  // The rest of a chunked body has an unknown length, and malformed framing hides its end, so the connection is closed.
  // Otherwise it stays open; the framework would close it after every body that a parser rejects.
  if (request.headers['transfer-encoding'] !== undefined || hasUnreadBody(request.raw)) closeUnread(request.raw, reply);
  else if (reply.hasHeader('connection')) reply.removeHeader('connection');
  const message = 'An internal error occurred. The server log has the cause under the request id.';
  const response = toErrorResponse(known ?? new ApiError('INTERNAL_ERROR', message));
  measures.rejections.add(response.body.error.code);
  log.rejected({
    code: response.body.error.code,
    requestId: request.id,
    method: request.method,
    remoteAddr: request.ip,
  });
  return reply
    .code(response.status)
    .headers(response.headers)
    .type('application/json; charset=utf-8')
    .send(response.body);
}

// The server adds these to the framework's requests and to the configuration of routes.

declare module 'fastify' {
  interface FastifyRequest {
    auth: AuthContext | null;
    token: string;
    /** Whether the token came in the parts of a browser's session. */
    isBrowserSession: boolean;
    /** Whether the response is a list, which holds rows besides the text that waits to be sent. */
    sendsList: boolean;
  }
  interface FastifyContextConfig {
    readonly measures?: RouteMeasures;
    readonly isAlwaysServed?: boolean;
    readonly showsLog?: boolean;
    readonly takesSession?: boolean;
    /** Null for a request that needs no token. */
    readonly permission?: Permission | null;
  }
}
