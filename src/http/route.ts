/** The type of a row of the route table, and the ways to make one from declarations. */
import type { Readable } from 'node:stream';
import { type TObject, type TSchema, Type } from 'typebox';
import {
  draftSchema,
  querySchema,
  replacementSchema,
  replySchema,
  requestProperties,
} from '../api/resource-schemas.ts';
import type { ServiceStatus } from '../api/types.ts';
import type { Endpoint } from '../core/endpoint.ts';
import type { TokenHash } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { PageQuery, toOptionalPage } from '../core/page.ts';
import type { Permission } from '../core/permissions.ts';
import { invalidRequest } from '../engine/errors.ts';
import {
  type AnyField,
  entriesOf,
  type Fields,
  type Memory,
  parseField,
  type ValueOf,
  wireNames,
} from '../engine/field.ts';
import { type DraftOf, type Shape, type ShownOf, shape } from '../engine/resource.ts';
import { sliceListing } from '../vault/paging.ts';
import type { Vault } from '../vault/vault.ts';
import type { BrowserPage } from './browser-session.ts';
import { streamList } from './lists.ts';
import { IDEMPOTENCY_HEADER, IF_MATCH_HEADER, type Represent } from './request-headers.ts';

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

/** The parts of a request as their declarations parse them. */
interface ReadRequest<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
}

interface BaseCall<Params, Query, Body> extends ReadRequest<Params, Query, Body> {
  readonly vault: Vault;
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

export interface Call<Params = unknown, Query = unknown, Body = unknown> extends BaseCall<Params, Query, Body> {
  readonly context: Context;
}

export interface PublicCall<Body = unknown> extends BaseCall<unknown, unknown, Body> {
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
  /** The schemas of the path parameters, in order, for the document. */
  readonly params: Readonly<Record<string, TSchema>>;
  /** The status of success. The default is 200, or 204 for a route without `data` and `content`. */
  readonly status: 200 | 201 | 204;
  /** The schema of the query in the document. `read` parses the values. */
  readonly query: TObject;
  /** The schema of the body in the document; null for a request without one. */
  readonly body: TObject | null;
  /** @throws INVALID_REQUEST */
  read(given: GivenRequest): ReadRequest<unknown, unknown, unknown>;
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
    | { readonly permission: null; handle(call: PublicCall): Promise<Reply> }
    /** The permission of the operation that the route submits or reads. */
    | { readonly permission: Permission; handle(call: Call): Promise<Reply> }
  );

type GuardedRoute = Extract<Route, { permission: Permission }>;
type PublicRoute = Extract<Route, { permission: null }>;

type Optional<K extends keyof RouteHead> = Partial<Pick<RouteHead, K>>;

interface RouteSpec<P extends Fields, Q extends Fields, B extends Fields>
  extends Pick<RouteHead, 'id' | 'method' | 'path' | 'summary'>,
    Optional<
      'status' | 'data' | 'content' | 'failureStatus' | 'meta' | 'headers' | 'aliases' | 'acceptsIdempotencyKey'
    >,
    Optional<'represent' | 'isAlwaysServed' | 'showsLog' | 'takesSession'> {
  readonly params?: P;
  readonly query?: Shape<Q>;
  /** The request has no body if this is missing. */
  readonly body?: Shape<B>;
}

type None = Record<never, never>;
type Handler<C> = { handle(call: C): Promise<Reply> };

/** A row for callers with the permission. The handler's types follow from the declarations. */
export function route<Q extends Fields = None, B extends Fields = None, P extends Fields = None>(
  row: RouteSpec<P, Q, B> & Pick<GuardedRoute, 'permission'> & Handler<Call<ValueOf<P>, DraftOf<Q>, DraftOf<B>>>,
): Route {
  // `read` returns values of the types that the declarations give the handler.
  const handle = row.handle as GuardedRoute['handle'];
  return { ...headOf(row), permission: row.permission, handle };
}

export function publicRoute<B extends Fields = None>(
  row: RouteSpec<None, None, B> & Handler<PublicCall<DraftOf<B>>>,
): Route {
  return { ...headOf(row), permission: null, handle: row.handle as PublicRoute['handle'] };
}

function headOf<P extends Fields, Q extends Fields, B extends Fields>(row: RouteSpec<P, Q, B>): RouteHead {
  const { headers, data = null, content = null, acceptsIdempotencyKey = false, represent = null } = row;
  const { params = {} as P, query = Nothing, body } = row;
  return {
    status: data === null && content === null ? 204 : 200,
    failureStatus: null,
    meta: 'never',
    aliases: [],
    isAlwaysServed: false,
    showsLog: false,
    takesSession: false,
    ...row,
    params: requestProperties(params),
    query: querySchema(query),
    body: body === undefined ? null : draftSchema(body),
    read: (given) => ({
      query: readQuery<Fields>(query, given.query),
      body: row.method === 'GET' ? {} : readBody<Fields>(body ?? Nothing, given.body),
      params: readParams(params, given.params),
    }),
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
  const made = route({
    ...head,
    data: reply === null ? null : replySchema(of),
    async handle({ vault, context, body }) {
      // `read` below makes it.
      const operation = endpoint.operation(context, body as I);
      const row = await (method === 'GET' ? vault.ledger.read(operation) : vault.ledger.submit(operation));
      return reply === null ? null : { data: toReply(row as ValueOf<F>) };
    },
  });
  const key = requestProperties(of.fields)[of.key];
  return {
    ...made,
    params: input.hasKey && key !== undefined ? { [of.key]: key } : {},
    body: input.body === null ? null : input.body === 'draft' ? draftSchema(of) : replacementSchema(of),
    read: (given) => ({
      ...made.read({ ...given, body: input.body === null ? given.body : {} }),
      body: input.read(given.params[of.key] ?? '', given.body ?? null),
    }),
  };
}

interface ReplySpec<P extends Fields, Q extends Fields, B extends Fields, R extends Fields>
  extends Omit<RouteSpec<P, Q, B>, 'data' | 'content'>,
    Pick<GuardedRoute, 'permission'> {
  readonly reply: Shape<R>;
  handle(call: Call<ValueOf<P>, DraftOf<Q>, DraftOf<B>>): Promise<ShownOf<R>>;
}

/** A row whose reply is one declared object. */
export function shapedRoute<
  R extends Fields,
  B extends Fields = None,
  Q extends Fields = None,
  P extends Fields = None,
>(spec: ReplySpec<P, Q, B, R>): Route {
  const { reply, handle, ...row } = spec;
  return route<Q, B, P>({
    ...row,
    data: replySchema(reply),
    handle: async (call) => ({ data: reply.toReply(await handle(call)) }),
  });
}

// Reads the path parameters, the query and the body of a request by the declarations of its route. INVARIANT: names,
// paths and ids reach the vault only as the branded types that the parsers return, which the compiler checks.

/** A query without parameters, or a body without fields. */
export const Nothing = shape('Nothing', {});

/** The parts of a request as they arrived. */
export interface GivenRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  /** Undefined for a request without a body. */
  readonly body: unknown;
}

/** In a URL a number is a text of digits. Other texts stay, and the field rejects them. */
function inUrl({ form }: AnyField, given: unknown, digits: RegExp): unknown {
  return form.kind === 'integer' && typeof given === 'string' && digits.test(given) ? Number(given) : given;
}

const DIGITS = /^\d{1,15}$/;
/** Without zeros in front, so that a resource has one address. */
const CANONICAL_DIGITS = /^(?:0|[1-9]\d{0,14})$/;

/** @throws INVALID_REQUEST */
function readParams<P extends Fields>(fields: P, given: GivenRequest['params']): ValueOf<P> {
  const values = entriesOf(fields).map(({ property, wire, field }) => [
    property,
    parseField(field, inUrl(field, given[wire], CANONICAL_DIGITS), wire) as Memory<P[string]>,
  ]);
  return Object.fromEntries(values) as ValueOf<P>;
}

/** @throws INVALID_REQUEST */
function readQuery<Q extends Fields>(of: Shape<Q>, given: GivenRequest['query']): DraftOf<Q> {
  const names = wireNames(of.fields);
  if (Object.keys(given).some((name) => !names.includes(name))) {
    const known = names.length === 0 ? 'no parameters are allowed' : `the allowed parameters are ${names.join(', ')}`;
    throw invalidRequest('query', `has an unknown parameter; ${known}`);
  }
  const repeated = names.find((name) => Array.isArray(given[name]));
  if (repeated !== undefined) throw invalidRequest(repeated, 'must be given once');
  return of.parse(
    Object.fromEntries(entriesOf(of.fields).map(({ wire, field }) => [wire, inUrl(field, given[wire], DIGITS)])),
  );
}

/** A request without a body has an empty one, unless a field is required. @throws INVALID_REQUEST */
function readBody<B extends Fields>(of: Shape<B>, given: unknown): DraftOf<B> {
  return of.parse(given === undefined && !needsBody(of) ? {} : (given ?? null));
}

function needsBody({ fields }: Pick<Shape<Fields>, 'fields'>): boolean {
  return entriesOf(fields).some(({ field: { presence } }) => presence === 'required');
}
