/**
 * Reads the path parameters, the query and the body of a request by the declarations of its route. INVARIANT: names,
 * paths and ids reach the vault only as the branded types that the parsers return, which the compiler checks.
 */
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
import { type DraftOf, type Shape, shape } from '../engine/resource.ts';

/** A query without parameters, or a body without fields. */
export const Nothing = shape('Nothing', {});

/** The parts of a request as they arrived. */
export interface GivenRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  /** Undefined for a request without a body. */
  readonly body: unknown;
}

const DIGITS = /^\d{1,15}$/;

/** In a URL a number is a text of digits. Other texts stay, and the field rejects them. */
function inUrl({ form }: AnyField, given: unknown): unknown {
  return form.kind === 'integer' && typeof given === 'string' && DIGITS.test(given) ? Number(given) : given;
}

/** @throws INVALID_REQUEST */
export function readParams<P extends Fields>(fields: P, given: GivenRequest['params']): ValueOf<P> {
  const values = entriesOf(fields).map(({ property, wire, field }) => [
    property,
    parseField(field, inUrl(field, given[wire]), wire) as Memory<P[string]>,
  ]);
  return Object.fromEntries(values) as ValueOf<P>;
}

/** @throws INVALID_REQUEST */
export function readQuery<Q extends Fields>(of: Shape<Q>, given: GivenRequest['query']): DraftOf<Q> {
  const names = wireNames(of.fields);
  if (Object.keys(given).some((name) => !names.includes(name))) {
    const known = names.length === 0 ? 'no parameters are allowed' : `the allowed parameters are ${names.join(', ')}`;
    throw invalidRequest('query', `has an unknown parameter; ${known}`);
  }
  const repeated = names.find((name) => Array.isArray(given[name]));
  if (repeated !== undefined) throw invalidRequest(repeated, 'must be given once');
  return of.parse(Object.fromEntries(entriesOf(of.fields).map(({ wire, field }) => [wire, inUrl(field, given[wire])])));
}

/** A request without a body has an empty one, unless a field is required. @throws INVALID_REQUEST */
export function readBody<B extends Fields>(of: Shape<B>, given: unknown): DraftOf<B> {
  return of.parse(given === undefined && !needsBody(of) ? {} : (given ?? null));
}

function needsBody({ fields }: Pick<Shape<Fields>, 'fields'>): boolean {
  return entriesOf(fields).some(({ field: { presence } }) => presence === 'required');
}
