/**
 * Endpoints of the HTTP API as data with a pure decision: route, validation, permission, event of the audit log and
 * idempotency follow from the declaration.
 */
import { invalidRequest } from '../engine/errors.ts';
import { type Fields, isRecord, type ValueOf } from '../engine/field.ts';
import type { DraftOf, ResourceType } from '../engine/resource.ts';
import type { BatchState } from './batch-state.ts';
import { type Context, type Operation, type OperationInput, type Outcome, operation } from './operation.ts';
import type { Permission } from './permissions.ts';

/** The input of a request: its schema, its parser, and whether the last part of its path is the key of a row. */
interface Input<F extends Fields, I> {
  readonly of: ResourceType<F>;
  readonly body: 'draft' | 'replacement' | null;
  readonly hasKey: boolean;
  read(key: string, body: unknown): I;
}

/** A reply contains a row, all rows, or nothing. */
type ReplyKind = 'row' | 'list' | null;
type Decided<F extends Fields, K extends ReplyKind> = K extends 'row'
  ? ValueOf<F>
  : K extends 'list'
    ? readonly ValueOf<F>[]
    : null;

interface EndpointSpec<F extends Fields, I, K extends ReplyKind> {
  /** The `operationId` of the OpenAPI document. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly summary: string;
  readonly permission: Permission;
  readonly status?: 201;
  readonly acceptsIdempotencyKey?: true;
  readonly input: Input<F, I>;
  readonly reply: K;
  /** The row whose entity tag a precondition compares; null if it does not exist. */
  find?(known: BatchState, given: I): object | null;
  decide(input: OperationInput, given: I): Outcome<Decided<F, K>>;
}

export interface Endpoint<F extends Fields, I, K extends ReplyKind> extends EndpointSpec<F, I, K> {
  operation(context: Context, given: I): Operation<Decided<F, K>>;
}

/** An endpoint for operators and the administrator. */
export function adminEndpoint<F extends Fields, I, const K extends ReplyKind>(
  spec: EndpointSpec<F, I, K>,
): Endpoint<F, I, K> {
  const { permission, input, find } = spec;
  return {
    ...spec,
    operation(context, given) {
      const resource = resourceOf(input, given);
      const target = find === undefined ? {} : { target: (known: BatchState) => find(known, given) };
      return operation({ context, permission, resource, ...target }, (decision) => spec.decide(decision, given));
    },
  };
}

/** The resource that an entry names: `policy:ci`, or `*` without a key. */
function resourceOf<F extends Fields, I>({ of, body, hasKey }: Input<F, I>, given: I): string {
  if (!hasKey && body === null) return '*';
  const value = typeof given === 'string' ? given : (given as Readonly<Record<string, unknown>>)[of.key];
  return `${of.name}:${of.formatKey(value as ValueOf<F>[keyof F])}`;
}

export function draftOf<F extends Fields>(of: ResourceType<F>): Input<F, DraftOf<F>> {
  return { of, body: 'draft', hasKey: false, read: (_key, body) => of.parse(body) };
}

/** The fields of a row whose key is in the path; the body may repeat the key. */
export function replacementOf<F extends Fields>(of: ResourceType<F>): Input<F, DraftOf<F>> {
  return {
    of,
    body: 'replacement',
    hasKey: true,
    read(key, body) {
      if (!isRecord(body)) return of.parse(body);
      const name = body[of.key];
      if (name !== undefined && name !== key) throw invalidRequest(of.key, `must equal the ${of.key} in the path`);
      return of.parse({ ...body, [of.key]: key });
    },
  };
}

export function keyOf<F extends Fields, K extends keyof F & string>(of: ResourceType<F, K>): Input<F, ValueOf<F>[K]> {
  return { of, body: null, hasKey: true, read: (key) => of.parseKey(key) };
}

export function nothing<F extends Fields>(of: ResourceType<F>): Input<F, null> {
  return { of, body: null, hasKey: false, read: () => null };
}
