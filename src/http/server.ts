/**
 * The HTTP server, made from THE TABLE. The way of a request: guard (target, headers, Host, state) → route → authenticate →
 * read and parse the body → check the schema → hand over → serialise. Every exit is a reply or a fault of the one table.
 */
import type { IncomingMessage } from 'node:http';
import type { SecureContextOptions } from 'node:tls';
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';
import type { ServiceStatus } from '../api/types.ts';
import type { Authentication } from '../core/agent.ts';
import { ApiError } from '../core/errors.ts';
import type { AdminOperation } from '../core/operations/admin-read.ts';
import { authenticate, type Vault } from '../vault/vault.ts';
import { ConnectionLimits } from './connection-limits.ts';
import {
  answerHalfClosed,
  type CallerTimeouts,
  continueIfExpected,
  handleConnectAndExpect,
  setTimeouts,
  writeClientError,
} from './connections.ts';
import { defaultError, toApiError, toErrorAnswer } from './errors.ts';
import { callerKey, FairStart, LargeBodies, MAX_BODY_BYTES } from './fair-start.ts';
import {
  type AllowedHosts,
  bearerToken,
  checkFraming,
  checkHost,
  checkSingleHeaders,
  checkTarget,
  checkVersion,
} from './guard.ts';
import type { RequestLog } from './log.ts';
import { isNotModified } from './preconditions.ts';
import { addRoutes, checkRight } from './register-routes.ts';
import { RequestOrder } from './request-order.ts';
import type { ProveService } from './route.ts';
import { isEncodedRoute, routingError } from './routing-errors.ts';
import { parseJson } from './strict-json.ts';
import { closeUnread, hasUnreadBody } from './unread-body.ts';
import { VALIDATOR } from './validation.ts';

export interface HttpParts {
  readonly vault: Vault;
  readonly status: () => ServiceStatus;
  readonly log: RequestLog;
  readonly newRequestId: () => string;
  /** Null where every Host is fine. */
  readonly hostRule: AllowedHosts | null;
  /** Proxies whose X-Forwarded-For is believed: addresses and networks. */
  readonly trustedProxies: readonly string[];
  readonly tls: SecureContextOptions | null;
  readonly prove: ProveService;
  readonly timeouts: CallerTimeouts;
}

const MAX_HEADER_BYTES = 16 * 1024;

/** Shared: capturing a stack trace per rejection is too expensive under overload. */
const OVERLOADED = new ApiError('UNAVAILABLE', 'The service has more to do than it can. Try again in a second.', 1);

declare module 'fastify' {
  interface FastifyRequest {
    authentication: Authentication | null;
    token: string;
  }
  interface FastifyContextConfig {
    /** No token is needed. What does not say so needs one. */
    readonly isPublic?: boolean;
    /** Served while the service starts, stops or is locked. */
    readonly isAlwaysServed?: boolean;
    /** The operation of a route that only the administrator may use. */
    readonly adminOperation?: AdminOperation;
  }
}

export type HttpServer = FastifyInstance;

export function createServer(parts: HttpParts): HttpServer {
  const { tls, trustedProxies, newRequestId, timeouts } = parts;
  const http = {
    maxHeaderSize: MAX_HEADER_BYTES,
    requireHostHeader: false,
    connectionsCheckingInterval: timeouts.checkIntervalMs,
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
    clientErrorHandler: (error, socket) => writeClientError(error, socket, newRequestId(), order.isResponding(socket)),
    frameworkErrors: (error, request, reply) => void answerError(parts, error, request, reply),
    ajv: VALIDATOR,
  } satisfies FastifyServerOptions;
  const app: HttpServer =
    tls === null
      ? fastify({ ...options, http })
      : // What is used of an HTTPS server is what it shares with an HTTP server.
        (fastify({
          ...options,
          https: { ...http, ...tls, handshakeTimeout: timeouts.headersMs },
        }) as unknown as HttpServer);
  handleConnectAndExpect(app.server, newRequestId);
  const connections = new ConnectionLimits(app.server, newRequestId);
  setTimeouts(app.server, timeouts);
  const order = new RequestOrder(app.server);
  answerHalfClosed(app.server);

  app.decorateRequest('authentication', null);
  app.decorateRequest('token', '');
  const starts = new FairStart();
  const largeBodies = new LargeBodies();
  app.addHook('onRequest', (request, reply, done) => {
    setCommonHeaders(request, reply);
    // The client was cut off, or told that the connection ends: nobody reads a response, so nothing is decided.
    const isGone = (): boolean => request.raw.socket.destroyed || request.raw.socket.writableEnded;
    if (isGone()) return void reply.hijack();
    const start = (act: () => void): void => {
      const begin = (): unknown => (isGone() ? reply.hijack() : act());
      if (!starts.run(request, begin)) done(OVERLOADED);
    };
    order.enter(request.raw, () => {
      try {
        guard(parts, request.raw, request.routeOptions.config.isAlwaysServed === true);
        if (request.is404 || isEncodedRoute(request.url, request.method)) throw routingError(request.url, reply);
        if (request.routeOptions.config.isPublic === true) return start(done);
        request.token = bearerToken(request.raw);
        const found = authenticate(parts.vault, request.token);
        if (typeof found === 'function')
          return start(() => found().then((authentication) => admit(authentication), done));
        admit(found);
      } catch (error) {
        const thrown = toError(error);
        start(() => done(thrown));
      }
    });
    function admit(authentication: Authentication): void {
      request.authentication = authentication;
      connections.keep(request.raw.socket);
      start(() => checkRight(parts.vault, request, done));
    }
  });
  // The body is about to be read.
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (!hasUnreadBody(request.raw)) return done(null, payload);
    largeBodies.enter(callerKey(request), request, reply.raw, () => {
      continueIfExpected(request.raw, reply.raw);
      done(null, payload);
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
        throw defaultError('UNSUPPORTED_MEDIA_TYPE');
      done(null, bytes.length === 0 ? undefined : parseJson(toBytes(bytes)));
    } catch (error) {
      done(toError(error));
    }
  });
  // What is empty has no type to be wrong.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => {
    done(bytes.length === 0 ? null : defaultError('UNSUPPORTED_MEDIA_TYPE'), undefined);
  });
  app.setErrorHandler((error: FastifyError, request, reply) => answerError(parts, error, request, reply));
  app.setNotFoundHandler((request, reply) => answerError(parts, routingError(request.url, reply), request, reply));
  addRoutes(app, parts);
  return app;
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({
    'x-request-id': request.id,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error('thrown value');
}

function toBytes(body: string | Buffer): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

function guard({ status, hostRule }: HttpParts, raw: IncomingMessage, isAlwaysServed: boolean): void {
  checkVersion(raw);
  checkFraming(raw);
  checkTarget(raw.url ?? '');
  checkSingleHeaders(raw);
  checkHost(raw, hostRule);
  const now = status();
  if (isAlwaysServed || now === 'ok' || now === 'failing') return;
  if (now === 'locked') throw new ApiError('VAULT_LOCKED', 'The vault is locked.');
  throw new ApiError('UNAVAILABLE', `The service is ${now}. Try again in a second.`, 1);
}

function answerError({ log }: HttpParts, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  const fault = toApiError(error);
  if (fault === null) log.unexpectedError(error, request.id);
  // What the framework rejects on its own did not pass the hooks.
  setCommonHeaders(request, reply);
  // What remains of a chunked body is unknown, and where it is framed wrongly so is its end. The framework would close after every
  // body that a parser rejects.
  if (request.headers['transfer-encoding'] !== undefined || hasUnreadBody(request.raw)) closeUnread(request.raw, reply);
  else if (reply.hasHeader('connection')) reply.removeHeader('connection');
  if (fault?.code === 'PRECONDITION_FAILED' && isNotModified(request.raw)) return reply.code(304).send();
  const answer = toErrorAnswer(fault ?? new ApiError('INTERNAL_ERROR', 'The service made a mistake; its log has it.'));
  log.rejected({ code: answer.body.error.code, requestId: request.id, method: request.method, remoteAddr: request.ip });
  return reply.code(answer.status).headers(answer.headers).type('application/json; charset=utf-8').send(answer.body);
}
