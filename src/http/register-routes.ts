/** Registers the rows of the route table with the framework. Every request of the HTTP API goes through `handle`. */
import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { Type } from 'typebox';
import { Meta } from '../api/responses.ts';
import type { Context } from '../core/operation.ts';
import { PreconditionFailed } from '../engine/errors.ts';
import { toTimestamp } from '../engine/timestamp.ts';
import { authorizeScrape, entityTag, toIdempotency } from '../vault/header-digests.ts';
import type { Vault } from '../vault/vault.ts';
import { BrowserPage, serverUrlOf } from './browser-session.ts';
import { allowLongWork, disconnectSignal, HALF_CLOSED_MS } from './connections.ts';
import type { HttpParts } from './http-server.ts';
import { isUnchanged, preconditionOf, readIdempotencyKey, requestFingerprint } from './request-headers.ts';
import type { Call, GivenRequest, MetricsPage, ProveServer, Reply, Route } from './route.ts';
import { ROUTES } from './routes/route-table.ts';

/** The body of an unauthenticated request has a few short fields. */
const MAX_PUBLIC_BODY_BYTES = 32 * 1024;

type Parts = Pick<HttpParts, 'vault' | 'status' | 'prove' | 'metrics' | 'measures' | 'publicNames'>;

const JSON_TYPE = 'application/json; charset=utf-8';
const TIME_HEADER = 'leasehold-time';
const NONCE_HEADER = 'leasehold-proof-nonce';

export function addRoutes(app: FastifyInstance, parts: Parts): void {
  for (const row of ROUTES) {
    for (const path of [row.path, ...row.aliases]) {
      app.route({
        method: row.method,
        url: toPattern(path),
        config: {
          measures: parts.measures.of(row.method, row.path),
          permission: row.permission,
          takesSession: row.takesSession,
          isAlwaysServed: row.isAlwaysServed,
          showsLog: row.showsLog,
        },
        ...(row.permission === null ? { bodyLimit: MAX_PUBLIC_BODY_BYTES } : {}),
        handler: (request, reply) => handle(parts, row, request, reply),
      });
    }
  }
}

/** `{path}` is the last parameter and may contain slashes; other parameters are one segment. */
function toPattern(path: string): string {
  return path.replace('{path}', '*').replaceAll(/\{(\w+)\}/g, ':$1');
}

type Serialize = ReturnType<FastifyReply['compileSerializationSchema']>;

/** Shared by all servers of the process. WHY not at startup: it would take a fifth longer. */
const serializers = new Map<Route, Serialize>();

function serializerOf(row: Route, reply: FastifyReply): Serialize {
  // WHY not for unions: their serialiser tries each schema in order, which is slower than JSON.stringify.
  if (row.data === null || 'anyOf' in row.data) return JSON.stringify;
  const known = serializers.get(row);
  if (known !== undefined) return known;
  const compiled = reply.compileSerializationSchema({ ...responseSchema(row, row.data) });
  serializers.set(row, compiled);
  return compiled;
}

function responseSchema(row: Route, data: TSchema): TSchema {
  return Type.Object(row.meta === 'always' ? { data, meta: Meta } : { data });
}

async function handle(
  { vault, status, prove, metrics, publicNames }: Parts,
  row: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const requestId = request.id;
  const remoteAddr = addressOf(request);
  if (row.permission === null) {
    const origin = { requestId, remoteAddr };
    const call = toCall(vault, row, request, reply, origin, publicNames);
    const { auth } = request;
    const result = await row.handle({
      ...call,
      status: status(),
      session: auth === null ? null : { ...origin, auth },
      isLocal: isLocal(request),
      prove: () => proofFor(request, prove),
      scrape: () => scrapeFor(request, metrics),
    });
    return send(request, reply, row, result);
  }
  const { auth } = request;
  if (auth === null) throw new Error('a guarded route was reached without a caller');
  // The console shows how much time is left by this clock, which decides, and not by its own, which may be wrong.
  if (request.isBrowserSession) reply.header(TIME_HEADER, toTimestamp(vault.clock.now()));
  const precondition = preconditionOf(request.raw, row.represent);
  const context: Context = {
    auth,
    requestId,
    remoteAddr,
    ...(precondition === null ? {} : { precondition }),
  };
  const call = toCall(vault, row, request, reply, context, publicNames);
  try {
    return send(request, reply, row, await row.handle(withIdempotency(row, request, call)));
  } catch (error) {
    throw represented(row, error);
  }
}

/** A precondition that does not hold is answered with the current state, as GET returns it. */
function represented({ represent }: Route, error: unknown): unknown {
  if (!(error instanceof PreconditionFailed) || represent === null || error.current == null) return error;
  return new PreconditionFailed(error.message, represent(error.current as never));
}

function proofFor(request: FastifyRequest, prove: ProveServer): string | null {
  const nonce = request.headers[NONCE_HEADER];
  return typeof nonce === 'string' ? prove(nonce) : null;
}

async function scrapeFor(request: FastifyRequest, metrics: MetricsPage): Promise<string> {
  const isTrusted = isLocal(request) && (metrics.trustsLoopback || isUnixSocket(request));
  authorizeScrape(request.headers.authorization, isTrusted, metrics.tokenHash);
  return metrics.render();
}

/** The call with its Idempotency-Key, if it has one and the row accepts it. @throws INVALID_REQUEST */
function withIdempotency(row: Route, request: FastifyRequest, call: Call): Call {
  const key = row.acceptsIdempotencyKey ? readIdempotencyKey(request.raw) : null;
  if (key === null) return call;
  const { vault, context, ifNoneMatch } = call;
  const fingerprint = requestFingerprint(row, givenIn(request), ifNoneMatch);
  const idempotency = toIdempotency(vault, context.auth, key, fingerprint);
  return { ...call, context: { ...context, idempotency } };
}

/** `{path}` is the framework's `*`. Parameters are decoded once. */
function givenIn({ params: given, query, body }: FastifyRequest): GivenRequest {
  const params = given as GivenRequest['params'];
  const path = params['*'];
  return { params: path === undefined ? params : { path }, query: query as GivenRequest['query'], body };
}

/** @throws INVALID_REQUEST */
function toCall<C>(
  vault: Vault,
  row: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  context: C,
  publicNames: ReadonlySet<string>,
) {
  return {
    vault,
    context,
    ...row.read(givenIn(request)),
    ifNoneMatch: request.headers['if-none-match'],
    token: request.token,
    browser: new BrowserPage(request, publicNames),
    serverUrl: () => serverUrlOf(request),
    disconnectSignal() {
      allowLongWork(request.raw);
      return disconnectSignal(request.raw, reply.raw);
    },
    listSignal: () => disconnectSignal(request.raw, reply.raw, HALF_CLOSED_MS),
  };
}

const LOOPBACK = /^(?:::1|(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/;

const FORWARDED = /^(?:forwarded|via|x-forwarded-.+|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip)$/;

/**
 * Whether the connection comes from this machine, and the request through no proxy that names itself. A forwarder of
 * bytes (`ssh -L`, a TCP balancer) cannot be told from its own client, so this limits the clients that may try, and
 * authenticates nobody.
 */
function isLocal(request: FastifyRequest): boolean {
  if (Object.keys(request.headers).some((name) => FORWARDED.test(name))) return false;
  return isUnixSocket(request) || LOOPBACK.test(request.socket.remoteAddress ?? '');
}

/** WHY not a missing address of the client: a TCP connection that was just closed has none either. */
function isUnixSocket({ server }: FastifyRequest): boolean {
  return typeof server.server.address() === 'string';
}

/** The client's address as the audit log records it: an IPv4-mapped IPv6 address as IPv4; null on a Unix socket. */
export function addressOf(request: FastifyRequest): string | null {
  const { remoteAddress } = request.socket;
  const forwarded: string | undefined = request.ip;
  // The header of a trusted proxy may contain any text.
  const address = forwarded === remoteAddress || isIP(forwarded ?? '') !== 0 ? forwarded : remoteAddress;
  if (address === undefined || address === '') return null;
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
}

function send(request: FastifyRequest, reply: FastifyReply, row: Route, result: Reply): FastifyReply {
  reply.code(row.status);
  if (result === null) return reply.send();
  if ('isEmpty' in result) return reply.headers(result.headers).send();
  if ('bytes' in result) return reply.type(result.type).send(result.bytes);
  if (!('stream' in result)) {
    const { data, meta, headers, hasFailed = false } = result;
    const tagged = result.tagged ?? (row.represent !== null && row.method === 'GET' ? Object(data) : null);
    if (headers !== undefined) reply.headers(headers);
    if (hasFailed && row.failureStatus !== null) reply.code(row.failureStatus);
    if (tagged !== null) {
      const tag = entityTag(tagged);
      reply.header('etag', tag);
      if (isUnchanged(request.headers, tag)) return reply.code(304).send();
    }
    return reply.type(JSON_TYPE).send(serializerOf(row, reply)({ data, meta }));
  }
  const { stream, headers = {}, type } = result;
  request.sendsList = true;
  return reply.headers(headers).type(type).send(stream);
}
