/** What a row of THE TABLE is. */
import type { Readable } from 'node:stream';
import type { Static, TObject, TSchema } from 'typebox';
import type { EventType } from '../core/audit.ts';
import type { Context } from '../core/operation.ts';
import type { Vault } from '../vault/vault.ts';
import { RETRY_HEADER } from './retries.ts';
import { EmptyBody } from './schemas.ts';

/** No query parameters, or no fields. */
const NOTHING: TObject = EmptyBody;

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export type Reply =
  | { readonly data: unknown; readonly meta?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly stream: Readable; readonly headers?: Readonly<Record<string, string>>; readonly type: string }
  /** 204 */
  | null;

interface Asking<Query, Body> {
  readonly vault: Vault;
  /** What the address holds: `path`, `name` or `lease_id`, decoded once and not yet parsed. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  readonly ifNoneMatch: string | undefined;
  /** The token that was shown; for an answer to its owner alone. */
  readonly token: string;
}

export interface Call<Query, Body> extends Asking<Query, Body> {
  readonly context: Context;
}

export interface PublicCall<Query, Body> extends Asking<Query, Body> {
  readonly context: Pick<Context, 'requestId' | 'remoteAddr'>;
}

interface RouteHead {
  readonly method: Method;
  /** As in OpenAPI: `{name}` is a parameter; `{path}` may hold slashes. */
  readonly path: string;
  readonly summary: string;
  readonly status: 200 | 201 | 204;
  readonly query: TObject;
  readonly body: TObject | null;
  /** The shape of `data`; null for 204, `entries` for newline-delimited JSON. */
  readonly data: TSchema | 'entries' | null;
  /** Whether `meta` stands beside `data`. */
  readonly meta: 'always' | 'paged' | 'never';
  /** Request headers that it looks at, with what they do. */
  readonly headers: Readonly<Record<string, string>>;
  /** Under which other addresses it is served too. */
  readonly aliases: readonly string[];
  /** Whether an Idempotency-Key is honoured. */
  readonly isRepeatable: boolean;
}

export type Route = RouteHead &
  (
    | { readonly who: 'public'; handle(call: PublicCall<unknown, unknown>): Promise<Reply> }
    | {
        readonly who: 'agent' | 'admin';
        /** What the log calls it. */
        readonly event: EventType;
        handle(call: Call<unknown, unknown>): Promise<Reply>;
      }
  );

interface Defined<Q extends TObject, B extends TObject | null> {
  readonly method: Method;
  readonly path: string;
  readonly summary: string;
  readonly status?: 200 | 201 | 204;
  readonly query?: Q;
  readonly body?: B;
  readonly data: TSchema | 'entries' | null;
  readonly meta?: 'always' | 'paged';
  readonly headers?: Readonly<Record<string, string>>;
  readonly aliases?: readonly string[];
  readonly isRepeatable?: true;
}

type QueryOf<Q extends TObject> = Static<Q>;
type BodyOf<B extends TObject | null> = B extends TObject ? Static<B> : undefined;

/** A row for callers with a token; the schemas give the handler its types. */
export function route<Q extends TObject, B extends TObject | null = null>(
  row: Defined<Q, B> & {
    readonly who: 'agent' | 'admin';
    readonly event: EventType;
    handle(call: Call<QueryOf<Q>, BodyOf<B>>): Promise<Reply>;
  },
): Route {
  // The schemas have checked what they type before the handler sees it.
  return {
    ...headOf(row),
    who: row.who,
    event: row.event,
    handle: row.handle as Extract<Route, { event: EventType }>['handle'],
  };
}

/** A row for everybody. */
export function publicRoute<Q extends TObject, B extends TObject | null = null>(
  row: Defined<Q, B> & { handle(call: PublicCall<QueryOf<Q>, BodyOf<B>>): Promise<Reply> },
): Route {
  return { ...headOf(row), who: 'public', handle: row.handle as Extract<Route, { who: 'public' }>['handle'] };
}

function headOf<Q extends TObject, B extends TObject | null>(row: Defined<Q, B>): RouteHead {
  return {
    method: row.method,
    path: row.path,
    summary: row.summary,
    status: row.status ?? 200,
    query: row.query ?? NOTHING,
    body: row.body ?? null,
    data: row.data,
    meta: row.meta ?? 'never',
    headers: { ...row.headers, ...(row.isRepeatable ? RETRY_HEADER : {}) },
    aliases: row.aliases ?? [],
    isRepeatable: row.isRepeatable ?? false,
  };
}
