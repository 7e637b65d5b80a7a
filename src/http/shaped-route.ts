/** Makes rows of the route table whose bodies and replies are declared. */
import { draftSchema, replySchema } from '../api/resource-schemas.ts';
import type { Fields } from '../engine/field.ts';
import type { DraftOf, Shape, ShownOf } from '../engine/resource.ts';
import { type Call, type Route, route } from './route.ts';

type Head = Omit<Parameters<typeof route>[0], 'query' | 'body' | 'data' | 'handle'>;

interface ShapedSpec<B extends Fields, R extends Fields> extends Head {
  /** Without it the request has no body. */
  readonly body?: Shape<B>;
  readonly reply: Shape<R>;
  handle(call: Call<unknown, DraftOf<B>>): Promise<ShownOf<R>>;
}

export function shapedRoute<R extends Fields, B extends Fields = Record<never, never>>(spec: ShapedSpec<B, R>): Route {
  const { body, reply, handle, ...head } = spec;
  return route({
    ...head,
    body: body === undefined ? null : draftSchema(body),
    data: replySchema(reply),
    async handle(call) {
      const given = body === undefined ? ({} as DraftOf<B>) : body.parse(call.body ?? {});
      return { data: reply.toReply(await handle({ ...call, body: given })) };
    },
  });
}
