/** From rows of the table to the framework's routes: the one funnel that every request of the interface goes through. */
import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { Fault } from '../core/fault.ts';
import type { Context } from '../core/operation.ts';
import { toIdempotency } from '../vault/idempotency.ts';
import { refuseAgent } from '../vault/refusal.ts';
import type { Vault } from '../vault/vault.ts';
import { validationFault } from './faults.ts';
import { readIdempotencyKey, requestTexts } from './retries.ts';
import type { Call, Reply, Route } from './route.ts';
import { ROUTES } from './routes/table.ts';
import { Data, EmptyBody, Meta } from './schemas.ts';

/** A stranger's body is a few short fields; parsing more would cost what nobody has paid for. */
const MAX_PUBLIC_BODY_BYTES = 32 * 1024;

export function addRoutes(app: FastifyInstance, vault: Vault): void {
  for (const row of ROUTES) {
    for (const path of [row.path, ...row.aliases]) {
      app.route({
        method: row.method,
        url: toPattern(path),
        config: { isPublic: row.who === 'public' },
        schema: toSchema(row),
        attachValidation: true,
        ...(row.who === 'public' ? { bodyLimit: MAX_PUBLIC_BODY_BYTES } : {}),
        ...(row.method === 'GET' || needsBody(row) ? {} : { preValidation: fillBody }),
        handler: (request, reply) => handle(vault, row, request, reply),
      });
    }
  }
}

/** No body is as good as an empty one. */
function fillBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (request.body === undefined) request.body = {};
  done();
}

/** Whether a request without a body lacks something. */
function needsBody({ body }: Route): boolean {
  return body !== null && (body.required ?? []).length > 0;
}

/** `{path}` may hold slashes and stands last; other parameters are one segment. */
function toPattern(path: string): string {
  return path.replace('{path}', '*').replaceAll(/\{(\w+)\}/g, ':$1');
}

function toSchema(row: Route): Record<string, unknown> {
  const schema: Record<string, unknown> = { querystring: row.query };
  if (row.method !== 'GET') schema['body'] = row.body ?? EmptyBody;
  // WHY not for unions: their serialiser tries one shape after the other, and costs more than plain JSON.
  if (row.data !== null && row.data !== 'entries' && !('anyOf' in row.data))
    schema['response'] = { [row.status]: answerSchema(row, row.data) };
  return schema;
}

function answerSchema(row: Route, data: TSchema): TSchema {
  return row.meta === 'always' ? Type.Object({ data, meta: Meta }) : Data(data);
}

async function handle(vault: Vault, row: Route, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const requestId = request.id;
  const remoteAddr = addressOf(request);
  if (row.who === 'public') {
    checkSchemas(row, request);
    return send(reply, row, await row.handle(toCall(vault, request, { requestId, remoteAddr })));
  }
  const { presented } = request;
  if (presented === null) throw new Error('a guarded route was reached without a caller');
  const context: Context = { presented, requestId, remoteAddr };
  try {
    checkSchemas(row, request);
    return send(reply, row, await row.handle(withIdempotency(row, request, toCall(vault, request, context))));
  } catch (error) {
    // An agent has no business here, however it words its request: it is told that first, and it is recorded.
    const isMalformed = error instanceof Fault && error.code === 'INVALID_REQUEST';
    if (isMalformed && row.who === 'admin') await refuseAgent(vault, context, row.event);
    throw error;
  }
}

/** The call with what its Idempotency-Key says, where it has one and the row honours it. @throws INVALID_REQUEST */
function withIdempotency(row: Route, request: FastifyRequest, call: Call<unknown, unknown>): Call<unknown, unknown> {
  const key = row.isRepeatable ? readIdempotencyKey(request.raw) : null;
  if (key === null) return call;
  const { vault, context } = call;
  const idempotency = toIdempotency(vault, context.presented, key, requestTexts(row, call));
  return { ...call, context: { ...context, idempotency } };
}

function toCall<C>(vault: Vault, request: FastifyRequest, context: C) {
  const params = request.params as Record<string, string>;
  return {
    vault,
    context,
    params: params['*'] === undefined ? params : { path: params['*'] },
    query: request.query,
    body: request.body,
    ifNoneMatch: request.headers['if-none-match'],
    token: request.token,
  };
}

function checkSchemas(row: Route, request: FastifyRequest): void {
  const { validationError } = request;
  if (validationError === undefined) return;
  const part = validationError.validationContext === 'querystring' ? 'query' : 'body';
  const schema = part === 'query' ? row.query : row.body;
  throw validationFault(part, validationError.validation[0], Object.keys(schema?.properties ?? {}));
}

/** As the log has it: an IPv4 address in IPv6 clothes as itself; null on a Unix socket. */
function addressOf(request: FastifyRequest): string | null {
  const { remoteAddress } = request.socket;
  const told: string | undefined = request.ip;
  // Behind a trusted proxy a header may hold anything.
  const address = told === remoteAddress || isIP(told ?? '') !== 0 ? told : remoteAddress;
  if (address === undefined || address === '') return null;
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
}

function send(reply: FastifyReply, row: Route, answer: Reply): FastifyReply {
  reply.code(row.status);
  if (answer === null) return reply.send();
  if ('stream' in answer)
    return reply
      .headers(answer.headers ?? {})
      .type(answer.type)
      .send(answer.stream);
  if (answer.headers === undefined) return reply.send(answer);
  const { headers, ...body } = answer;
  return reply.headers(headers).send(body);
}
