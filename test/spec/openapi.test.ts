// The OpenAPI document is well formed and agrees with the route table. SOURCE: docs/decisions.md, "Requests".
// Structure: OpenAPI Specification 3.1.0, sections 4.8.1 to 4.8.30.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ROUTES } from '../../src/http/routes/table.ts';
import { assertKeys } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { type Json, readDocument, resolveReferences } from './document.ts';

const { document, operations, answer } = await readDocument(await startTestService({ after }));

// SOURCE: JSON Schema 2020-12, the keywords used here.
const KEYWORDS = [
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'anyOf',
  'const',
  'enum',
  'title',
  'description',
  'format',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'patternProperties',
  'contentEncoding',
  '$ref',
];
const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];

/** Every schema of the document with its location, outer schemas before nested ones. */
function schemasIn(value: Json, at: string): { at: string; schema: Json }[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item, index) => schemasIn(item, `${at}/${index}`));
  return Object.entries<Json>(value).flatMap(([key, inner]) => {
    const here = `${at}/${key}`;
    if (key === 'schema') return nested(inner, here);
    if (here === '/components/schemas')
      return Object.entries(inner).flatMap(([name, one]) => nested(one, `${here}/${name}`));
    return schemasIn(inner, here);
  });
}

function nested(schema: Json, at: string): { at: string; schema: Json }[] {
  const inner = [
    ...Object.entries<Json>(schema.properties ?? {}).map(([name, one]) => [`properties/${name}`, one]),
    ...Object.entries<Json>(schema.patternProperties ?? {}).map(([, one]) => ['patternProperties', one]),
    ...(schema.items === undefined ? [] : [['items', schema.items]]),
    ...(schema.anyOf ?? []).map((one: Json, index: number) => [`anyOf/${index}`, one]),
  ];
  return [{ at, schema }, ...inner.flatMap(([name, one]) => nested(one, `${at}/${name}`))];
}

test('the document is OpenAPI 3.1 in JSON and names the product and its version', () => {
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
  assertKeys(document, 'openapi info tags paths components');
  assert.match(document.openapi, /^3\.1\.\d+$/);
  assertKeys(document.info, 'title description version license');
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
  assert.deepEqual([document.info.title, document.info.version], ['Leasehold', version]);
  assert.deepEqual(document.info.license, { name: 'Apache-2.0', identifier: 'Apache-2.0' });
});

test('the document holds exactly the routes of the table and names aliases in descriptions', () => {
  const rows = ROUTES.map(({ method, path }) => `${method.toLowerCase()} ${path}`);
  assert.deepEqual(operations.map(({ name }) => name).sort(), rows.sort());
  for (const { path, aliases } of ROUTES) {
    const texts = operations.filter((one) => one.path === path).map(({ operation }) => operation.description);
    for (const alias of aliases)
      assert.equal(
        texts.every((text) => text.includes(`\`${alias}\``)),
        true,
        alias,
      );
  }
});

test('parameters, bodies, statuses and ids are those of the table, with every constraint', () => {
  const plain = (value: unknown): Json => JSON.parse(JSON.stringify(value));
  for (const { id, method, path, params, query, headers, body, status, failureStatus, permission } of ROUTES) {
    const name = `${method.toLowerCase()} ${path}`;
    const { operation } = operations.find((one) => one.name === name) ?? assert.fail(path);
    assert.equal(operation.operationId, id);
    const shown = operation.parameters.map(({ name: key, description, schema }: Json) => {
      const { $ref: _, ...constraints } = resolveReferences(document, schema);
      return [key, { ...constraints, ...(description === undefined ? {} : { description }) }];
    });
    assert.deepEqual(Object.fromEntries(shown), plain({ ...params, ...query.properties, ...headers }));
    const schema = resolveReferences(document, operation.requestBody?.content['application/json'].schema);
    const hasFields = body !== null && Object.keys(body.properties).length > 0;
    assert.deepEqual(schema, hasFields ? plain(body) : undefined);
    assertKeys(operation.responses, `${status} ${failureStatus ?? ''} default`.replace('  ', ' '));
    assert.deepEqual(operation.security, permission === null ? [] : [{ bearer: [] }]);
    assert.deepEqual(operation.responses.default.content['application/json'].schema, {
      $ref: '#/components/schemas/ErrorBody',
    });
  }
});

/** Strings without constraints: search values and tokens. */
const UNBOUND = ['SimulateRequest/properties/action'];

test('request schemas bound every string, number and array', () => {
  const inRequests = schemasIn(document, '').filter(({ at }) =>
    /\/parameters\/|schemas\/(?:\w+Re(?:quest|placement)|Placement|TargetFields|RequestHeaders)\b/.test(at),
  );
  assert.equal(inRequests.length > 50, true);
  for (const { at, schema } of inRequests) {
    if (UNBOUND.some((one) => at.endsWith(one))) continue;
    if (schema.type === 'string')
      assert.equal('pattern' in schema || 'maxLength' in schema || 'enum' in schema, true, at);
    if (schema.type === 'array') assert.equal('minItems' in schema, true, at);
    if (schema.type === 'integer') assert.equal('minimum' in schema && 'maximum' in schema, true, at);
    assert.notEqual(schema.type, 'number', at);
  }
});

/** Objects that browsers make, to which future browsers may add fields. */
const OF_BROWSER = /\/(?:AssertionData|AssertionResponse|AttestationData|ExtensionResults|RegistrationResponse)$/;

test('every schema is valid JSON Schema 2020-12, objects are closed, and every reference resolves', () => {
  const schemas = schemasIn(document, '');
  assert.equal(schemas.length > 150, true);
  for (const { at, schema } of schemas) {
    for (const keyword of Object.keys(schema)) assert.equal(KEYWORDS.includes(keyword), true, `${at}: ${keyword}`);
    for (const type of [schema.type ?? []].flat()) assert.equal(TYPES.includes(type), true, at);
    for (const name of schema.required ?? []) assert.equal(name in schema.properties, true, `${at}: ${name}`);
    if (schema.$ref === undefined) {
      const isTyped = ['type', 'anyOf', 'const'].some((keyword) => keyword in schema);
      assert.equal(isTyped, true, `${at} says nothing`);
    } else {
      const parts: string[] = schema.$ref.replace(/^#\//, '').split('/');
      assert.notEqual(
        parts.reduce((inner: Json, part) => inner?.[part], document),
        undefined,
        at,
      );
    }
    const isOpen = /\/schema$/.test(at) || OF_BROWSER.test(at);
    if (schema.type === 'object') assert.equal(isOpen || schema.additionalProperties === false, true, at);
  }
});
