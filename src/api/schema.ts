/**
 * Builds JSON schemas with their static types. WHY not the functions of `typebox`, whose types these have: the service
 * would load 370 files for them, which take 7 MiB of its memory at rest.
 */
import type { TProperties, TSchema, Type as TypeBox } from 'typebox';

type Builder = Pick<
  typeof TypeBox,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unsafe'
>;

/** Marks a property that may be missing. Hidden, because the schema does not contain it. */
const OPTIONAL = '~optional';

/** The schemas that `typebox` builds of the same arguments. */
export const Type = {
  Array: (items: TSchema, options?: object) => ({ type: 'array', items, ...options }),
  Boolean: (options?: object) => ({ type: 'boolean', ...options }),
  Enum: (values: readonly string[], options?: object) => ({ enum: values, ...options }),
  Integer: (options?: object) => ({ type: 'integer', ...options }),
  Literal: (value: string | number | boolean, options?: object) => ({ type: typeof value, const: value, ...options }),
  Null: (options?: object) => ({ type: 'null', ...options }),
  Number: (options?: object) => ({ type: 'number', ...options }),
  Object(properties: TProperties, options?: object) {
    const required = Object.keys(properties).filter((name) => !Object.hasOwn(properties[name] ?? {}, OPTIONAL));
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options };
  },
  Optional: (schema: TSchema) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  Record: (key: { readonly pattern?: string }, values: TSchema, options?: object) => ({
    type: 'object',
    patternProperties: { [key.pattern ?? '^.*$']: values },
    ...options,
  }),
  String: (options?: object) => ({ type: 'string', ...options }),
  Union: (anyOf: readonly TSchema[], options?: object) => ({ anyOf, ...options }),
  Unsafe: (schema: object) => schema,
} as unknown as Builder;
