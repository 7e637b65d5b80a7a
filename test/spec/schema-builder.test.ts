// The schemas of src/api/schema.ts are those that typebox builds, whose types they have.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type as TypeBox } from 'typebox';
import { Type } from '../../src/api/schema.ts';

const SCHEMAS: Readonly<Record<string, (build: typeof Type) => unknown>> = {
  array: (build) => build.Array(build.String(), { minItems: 1 }),
  boolean: (build) => build.Boolean({ description: 'd' }),
  enum: (build) => build.Enum(['a', 'b'], { type: 'string' }),
  integer: (build) => build.Integer({ minimum: 1 }),
  'literals of two types': (build) => [build.Literal(true), build.Literal('a', { title: 't' })],
  null: (build) => build.Null(),
  'object with required and optional fields': (build) =>
    build.Object({ a: build.String(), b: build.Optional(build.Integer()) }, { additionalProperties: false }),
  'object with optional fields only': (build) => build.Object({ b: build.Optional(build.Null()) }),
  'field that is copied from an optional one': (build) =>
    build.Object({ a: build.String({ ...build.Optional(build.String({ maxLength: 2 })) }) }),
  'record with any key': (build) => build.Record(build.String(), build.Integer(), { minProperties: 1 }),
  'record with a pattern': (build) => build.Record(build.String({ pattern: '^a$' }), build.Integer()),
  union: (build) => build.Union([build.String(), build.Null()], { description: 'd' }),
  unsafe: (build) => build.Object({ a: build.Optional(build.Unsafe<string>({ type: ['string', 'null'] })) }),
};

for (const [name, schema] of Object.entries(SCHEMAS)) {
  test(`a schema is the one of typebox: ${name}`, () => {
    assert.equal(JSON.stringify(schema(Type)), JSON.stringify(schema(TypeBox)));
  });
}
