/** Makes rows of the route table from declarations: of endpoints, and of bodies and replies. */
import { Type } from 'typebox';
import { PageQuery } from '../api/requests.ts';
import { draftSchema, keySchema, replacementSchema, replySchema } from '../api/resource-schemas.ts';
import type { Endpoint } from '../core/endpoint.ts';
import type { Fields, ValueOf } from '../engine/field.ts';
import type { DraftOf, Shape, ShownOf } from '../engine/resource.ts';
import { sliceListing } from '../vault/paging.ts';
import { streamList, toOptionalPage } from './lists.ts';
import { type Call, type Route, route } from './route.ts';

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

type Head = Omit<Parameters<typeof route>[0], 'query' | 'body' | 'data' | 'handle'>;

interface ShapedSpec<B extends Fields, R extends Fields> extends Head {
  /** Without it the request has no body. */
  readonly body?: Shape<B>;
  readonly reply: Shape<R>;
  handle(call: Call<unknown, DraftOf<B>>): Promise<ShownOf<R>>;
}

/** A row whose body and reply are declared. */
export function shapedRoute<R extends Fields, B extends Fields = Record<never, never>>(spec: ShapedSpec<B, R>): Route {
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
