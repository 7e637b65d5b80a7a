/** The type of a row of the route table, and the ways to make one: from schemas or from declarations. */
import type { Readable } from 'node:stream';
import { type Static, type TObject, type TSchema, Type } from 'typebox';
import { Nothing, PageQuery } from '../api/requests.ts';
import { draftSchema, keySchema, replacementSchema, replySchema } from '../api/resource-schemas.ts';
import type { ServiceStatus } from '../api/types.ts';
import type { Endpoint } from '../core/endpoint.ts';
import type { TokenHash } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import type { Permission } from '../core/permissions.ts';
import type { Fields, ValueOf } from '../engine/field.ts';
import type { DraftOf, Shape, ShownOf } from '../engine/resource.ts';
import { sliceListing } from '../vault/paging.ts';
import type { Vault } from '../vault/vault.ts';
import type { BrowserPage } from './browser-session.ts';
import { streamList, toOptionalPage } from './lists.ts';
import { IDEMPOTENCY_HEADER, IF_MATCH_HEADER, type Represent } from './request-headers.ts';

const NOTHING: TObject = Nothing;

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export type Reply =
  | {
      readonly data: unknown;
      /** The object that the entity tag of a GET covers, if it is not `data`. */
      readonly tagged?: object;
      readonly meta?: unknown;
      readonly hasFailed?: boolean;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly bytes: Uint8Array; readonly type: string }
  | { readonly stream: Readable; readonly headers?: Readonly<Record<string, string>>; readonly type: string }
  /** 204 */
  | { readonly isEmpty: true; readonly headers: Readonly<Record<string, string>> }
  | null;

interface BaseCall<Query, Body, Param extends string> {
  readonly vault: Vault;
  /** Decoded once, and not yet parsed. */
  readonly params: Readonly<Record<Param, string>>;
  readonly query: Query;
  readonly body: Body;
  readonly ifNoneMatch: string | undefined;
  /** The request's token; a response may contain it only for its owner. */
  readonly token: string;
  readonly browser: BrowserPage;
  /** The URL of the server as the caller named it. @throws INVALID_REQUEST */
  serverUrl(): string;
  /** Aborted when the client disconnects, so that long work stops. */
  disconnectSignal(): AbortSignal;
  /** The same for work on lists, which a client receives for a second after it has ended its side. */
  listSignal(): AbortSignal;
}

export interface Call<Query, Body, Param extends string = string> extends BaseCall<Query, Body, Param> {
  readonly context: Context;
}

export interface PublicCall<Query, Body> extends BaseCall<Query, Body, string> {
  readonly context: Pick<Context, 'requestId' | 'remoteAddr'>;
  readonly status: ServiceStatus;
  /** The caller's session, at a route that accepts one; null without one. */
  readonly session: Context | null;
  /** Whether the request came over a Unix socket or from this machine, and through no proxy. */
  readonly isLocal: boolean;
  /** The proof for the caller's nonce; null without a nonce, or if this server has no data directory. */
  prove(): string | null;
  /** The metrics as text. @throws UNAUTHENTICATED or ACCESS_DENIED for a caller that may not read them */
  scrape(): Promise<string>;
}

/** Returns the proof, for a caller's nonce, that this server has the data directory whose key the caller has. */
export type ProveServer = (nonce: string) => string | null;

export interface MetricsPage {
  /** Hash of the metrics token; null without one: then only clients on this machine may read them. */
  readonly tokenHash: TokenHash | null;
  /** Whether a connection from a loopback address is one from this machine. */
  readonly trustsLoopback: boolean;
  render(): Promise<string>;
}

export interface RouteGroup {
  readonly tag: string;
  readonly description: string;
  readonly routes: readonly Route[];
}

interface RouteHead {
  /** The `operationId` in the OpenAPI document, which names the operation in generated clients. */
  readonly id: string;
  readonly method: Method;
  /** The path as in OpenAPI: `{name}` is a parameter. Only `{path}` may contain slashes. */
  readonly path: string;
  readonly summary: string;
  /** The schemas of the path parameters, in order, for the document. Parsers check the values. */
  readonly params: Readonly<Record<string, TSchema>>;
  /** The status of success. The default is 200, or 204 for a route without `data` and `content`. */
  readonly status: 200 | 201 | 204;
  readonly query: TObject;
  readonly body: TObject | null;
  /** Whether the handler parses the body, whose schema is for the document only. */
  readonly isBodyDeclared: boolean;
  readonly data: TSchema | null;
  readonly content: { readonly mediaType: string; readonly description: string } | null;
  /** The status of a response that reports a failure in `data`. */
  readonly failureStatus: 503 | null;
  readonly meta: 'always' | 'paged' | 'never';
  /** The request headers that the route reads, with their descriptions. */
  readonly headers: Readonly<Record<string, TSchema>>;
  readonly aliases: readonly string[];
  readonly acceptsIdempotencyKey: boolean;
  /** Makes the data whose digest is the entity tag; null if the resource has no entity tag. */
  readonly represent: Represent | null;
  readonly isAlwaysServed: boolean;
  /** Whether the route is served in recovery mode, while a loss of audit entries is not accepted. */
  readonly showsLog: boolean;
  /** Whether a route that needs no token authenticates one that it receives. */
  readonly takesSession: boolean;
}

export type Route = RouteHead &
  (
    | { readonly permission: null; handle(call: PublicCall<unknown, unknown>): Promise<Reply> }
    /** The permission of the operation that the route submits or reads. */
    | { readonly permission: Permission; handle(call: Call<unknown, unknown>): Promise<Reply> }
  );

type GuardedRoute = Extract<Route, { permission: Permission }>;
type PublicRoute = Extract<Route, { permission: null }>;

interface RouteSpec<Q extends TObject, B extends TObject | null, P extends string = string>
  extends Pick<RouteHead, 'id' | 'method' | 'path' | 'summary'>,
    Partial<Omit<RouteHead, 'id' | 'method' | 'path' | 'summary' | 'params' | 'query' | 'body'>> {
  readonly params?: Readonly<Record<P, TSchema>>;
  readonly query?: Q;
  readonly body?: B;
}

type Handler<C> = { handle(call: C): Promise<Reply> };
type QueryOf<Q extends TObject> = Static<Q>;
type BodyOf<B extends TObject | null> = B extends TObject ? Static<B> : undefined;

/** A row for callers with the permission. The handler's types follow from the schemas. */
export function route<Q extends TObject, B extends TObject | null = null, P extends string = never>(
  row: RouteSpec<Q, B, P> & Pick<GuardedRoute, 'permission'> & Handler<Call<QueryOf<Q>, BodyOf<B>, P>>,
): Route {
  // The values were validated by the schemas that give them their types.
  const handle = row.handle as GuardedRoute['handle'];
  return { ...headOf(row), permission: row.permission, handle };
}

export function publicRoute<Q extends TObject, B extends TObject | null = null>(
  row: RouteSpec<Q, B> & Handler<PublicCall<QueryOf<Q>, BodyOf<B>>>,
): Route {
  return { ...headOf(row), permission: null, handle: row.handle as PublicRoute['handle'] };
}

function headOf<Q extends TObject, B extends TObject | null>(row: RouteSpec<Q, B>): RouteHead {
  const { headers, data = null, content = null, acceptsIdempotencyKey = false, represent = null } = row;
  return {
    params: {},
    status: data === null && content === null ? 204 : 200,
    query: NOTHING,
    body: null,
    isBodyDeclared: false,
    failureStatus: null,
    meta: 'never',
    aliases: [],
    isAlwaysServed: false,
    showsLog: false,
    takesSession: false,
    ...row,
    data,
    content,
    acceptsIdempotencyKey,
    represent,
    headers: {
      ...headers,
      ...(acceptsIdempotencyKey ? IDEMPOTENCY_HEADER : {}),
      ...(represent === null || row.method === 'GET' ? {} : IF_MATCH_HEADER),
    },
  };
}

/** The row of a declared endpoint. */
export function toRoute<F extends Fields, I, K extends 'row' | 'list' | null>(endpoint: Endpoint<F, I, K>): Route {
  const { id, method, path, summary, permission, status, acceptsIdempotencyKey = false, input, reply } = endpoint;
  const { of } = input;
  const toReply = (row: ValueOf<F>): object => of.toReply(row);
  const head = {
    id,
    method,
    path,
    summary,
    permission,
    acceptsIdempotencyKey,
    ...(status === undefined ? {} : { status }),
    ...(input.hasKey ? { params: { [of.key]: keySchema(of) } } : {}),
    ...(endpoint.find === undefined ? {} : { represent: toReply }),
  };
  if (reply === 'list') {
    return route({
      ...head,
      query: PageQuery,
      data: Type.Array(replySchema(of)),
      meta: 'paged',
      async handle({ vault, context, query }) {
        const rows = await vault.ledger.read(endpoint.operation(context, input.read('', {})));
        return streamList(sliceListing(rows as readonly ValueOf<F>[], toOptionalPage(query)), toReply);
      },
    });
  }
  const body = input.body === null ? null : input.body === 'draft' ? draftSchema(of) : replacementSchema(of);
  return route({
    ...head,
    body,
    isBodyDeclared: body !== null,
    data: reply === null ? null : replySchema(of),
    async handle({ vault, context, params, body: given }) {
      const request = input.read(params[of.key] ?? '', body === null ? {} : given);
      const operation = endpoint.operation(context, request);
      const row = await (method === 'GET' ? vault.ledger.read(operation) : vault.ledger.submit(operation));
      return reply === null ? null : { data: toReply(row as ValueOf<F>) };
    },
  });
}

interface ShapedSpec<B extends Fields, R extends Fields, P extends string>
  extends Omit<RouteSpec<TObject, null, P>, 'query' | 'body' | 'data'>,
    Pick<GuardedRoute, 'permission'> {
  /** The request has no body if this is missing. */
  readonly body?: Shape<B>;
  readonly reply: Shape<R>;
  handle(call: Call<unknown, DraftOf<B>, P>): Promise<ShownOf<R>>;
}

/** A row whose body and reply are declared. */
export function shapedRoute<R extends Fields, B extends Fields = Record<never, never>, P extends string = never>(
  spec: ShapedSpec<B, R, P>,
): Route {
  const { body, reply, handle, ...head } = spec;
  return route({
    ...head,
    body: body === undefined ? null : draftSchema(body),
    isBodyDeclared: body !== undefined,
    data: replySchema(reply),
    async handle(call) {
      const given = body === undefined ? ({} as DraftOf<B>) : body.parse(call.body);
      return { data: reply.toReply(await handle({ ...call, body: given })) };
    },
  });
}
