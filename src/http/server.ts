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
import type { Presented } from '../core/agent.ts';
import { Fault } from '../core/fault.ts';
import { authenticate, type Vault } from '../vault/vault.ts';
import {
  answerUnusual,
  type CallerTimeouts,
  limitConnections,
  limitPipelining,
  setTimeouts,
  writeClientError,
} from './connections.ts';
import { standardFault, toErrorAnswer, toFault } from './faults.ts';
import { bearerToken, checkAuthorizationOnce, checkHost, checkTarget, checkVersion, type HostRule } from './guard.ts';
import { addRoutes } from './handlers.ts';
import { addHealth, HEALTH_PATH } from './health.ts';
import { parseJson } from './json.ts';
import type { RequestLog } from './log.ts';
import { faultOfUnrouted } from './notfound.ts';
import { addOpenApi } from './openapi.ts';
import { endSilent } from './silence.ts';
import type { ServiceStatus } from './status.ts';

export interface HttpParts {
  readonly vault: Vault;
  readonly status: () => ServiceStatus;
  readonly log: RequestLog;
  readonly newRequestId: () => string;
  /** Null where every Host is fine. */
  readonly hostRule: HostRule | null;
  /** Proxies whose X-Forwarded-For is believed: addresses and networks. */
  readonly trustedProxies: readonly string[];
  readonly tls: SecureContextOptions | null;
  readonly timeouts: CallerTimeouts;
}

/** Room for a value of 256 KiB whose every byte is escaped, and for the rest of its body. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;

declare module 'fastify' {
  interface FastifyRequest {
    presented: Presented | null;
    token: string;
  }
  interface FastifyContextConfig {
    /** No token is needed. What does not say so needs one. */
    readonly isPublic?: boolean;
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
    clientErrorHandler: (error, socket) => writeClientError(error, socket, newRequestId()),
    frameworkErrors: (error, request, reply) => void answerError(parts, error, request, reply),
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: false } },
  } satisfies FastifyServerOptions;
  const app: HttpServer =
    tls === null
      ? fastify({ ...options, http })
      : // What is used of an HTTPS server is what it shares with an HTTP server.
        (fastify({
          ...options,
          https: { ...http, ...tls, handshakeTimeout: timeouts.headersMs },
        }) as unknown as HttpServer);
  setTimeouts(app.server, timeouts);
  answerUnusual(app.server, newRequestId);
  endSilent(app.server);
  limitConnections(app.server, newRequestId);
  limitPipelining(app.server);

  app.decorateRequest('presented', null);
  app.decorateRequest('token', '');
  app.addHook('onRequest', (request, reply, done) => {
    // Cut off for what it sent ahead: nobody hears an answer, and nothing is decided for nobody.
    if (request.raw.socket.destroyed) return void reply.hijack();
    setCommonHeaders(request, reply);
    try {
      guard(parts, request.raw, request.url === HEALTH_PATH);
      // Before a body is read that nobody asked for.
      if (request.is404) return done(faultOfUnrouted(request.url, reply));
      if (request.routeOptions.config.isPublic === true) return done();
      request.token = bearerToken(request.raw);
      const found = authenticate(parts.vault, request.token);
      if (!(found instanceof Promise)) {
        request.presented = found;
        return done();
      }
      found.then((presented) => {
        request.presented = presented;
        done();
      }, done);
    } catch (error) {
      done(error instanceof Error ? error : new Error('thrown value'));
    }
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
    try {
      if ((request.headers['content-encoding'] ?? 'identity') !== 'identity')
        throw standardFault('UNSUPPORTED_MEDIA_TYPE');
      done(null, bytes.length === 0 ? undefined : parseJson(toBytes(bytes)));
    } catch (error) {
      done(error instanceof Error ? error : new Error('thrown value'));
    }
  });
  // What is empty has no type to be wrong.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => {
    done(bytes.length === 0 ? null : standardFault('UNSUPPORTED_MEDIA_TYPE'), undefined);
  });
  app.setErrorHandler((error: FastifyError, request, reply) => answerError(parts, error, request, reply));
  app.setNotFoundHandler((request, reply) => answerError(parts, faultOfUnrouted(request.url, reply), request, reply));
  addHealth(app, parts.status);
  addOpenApi(app);
  addRoutes(app, parts.vault);
  return app;
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({
    'x-request-id': request.id,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
}

function toBytes(body: string | Buffer): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

function guard({ status, hostRule }: HttpParts, raw: IncomingMessage, isHealth: boolean): void {
  checkVersion(raw);
  checkTarget(raw.url ?? '');
  checkAuthorizationOnce(raw);
  checkHost(raw, hostRule);
  const now = status();
  if (isHealth || now === 'ok' || now === 'failing') return;
  if (now === 'locked') throw new Fault('VAULT_LOCKED', 'The vault is locked.');
  throw new Fault('UNAVAILABLE', `The service is ${now}. Try again in a second.`, 1);
}

function answerError({ log }: HttpParts, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  const fault = toFault(error);
  if (fault === null) log.bug(error, request.id);
  // What the framework refuses by itself has not come past the hooks.
  setCommonHeaders(request, reply);
  const answer = toErrorAnswer(fault ?? new Fault('INTERNAL_ERROR', 'The service made a mistake; its log has it.'));
  log.refused({ code: answer.body.error.code, requestId: request.id, method: request.method, remoteAddr: request.ip });
  return reply.code(answer.status).headers(answer.headers).type('application/json; charset=utf-8').send(answer.body);
}
