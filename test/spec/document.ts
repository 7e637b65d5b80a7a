/** The OpenAPI document as the server serves it, and whether responses conform to it. */
import assert from 'node:assert/strict';
import { Compile } from 'typebox/schema';
import type { TestResponse } from '../kit/client.ts';
import type { TestService } from '../kit/service.ts';

export type Json = TestResponse['body'];

interface Operation {
  /** Method in lower case and path, as the document spells them. */
  readonly name: string;
  readonly path: string;
  readonly method: string;
  readonly operation: Json;
}

/** The schema with its references resolved. */
export function resolveReferences(document: Json, schema: Json): Json {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map((inner) => resolveReferences(document, inner));
  if (typeof schema.$ref === 'string')
    return resolveReferences(document, document.components.schemas[schema.$ref.split('/').at(-1)]);
  return Object.fromEntries(
    Object.entries<Json>(schema).map(([key, inner]) => [key, resolveReferences(document, inner)]),
  );
}

export async function readDocument({ anonymous }: TestService) {
  const answer = await anonymous.get('/openapi.json');
  const document: Json = answer.body;
  const operations: Operation[] = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, operation]) => ({ name: `${method} ${path}`, path, method, operation })),
  );
  return { answer, document, operations };
}

/** Asserts that the response of an operation conforms to the document and has no keys besides those that it names. */
export function conformance({
  document,
  operations,
}: Pick<Awaited<ReturnType<typeof readDocument>>, 'document' | 'operations'>) {
  const validators = new Map<unknown, ReturnType<typeof Compile>>();
  return (answer: TestResponse, name: string): void => {
    const { operation } = operations.find((one) => one.name === name) ?? assert.fail(name);
    const status = String(answer.status);
    const response = operation.responses[status] ?? operation.responses.default;
    assert.equal(answer.status < 400, operation.responses[status] !== undefined, `${name}: ${answer.text}`);
    if (response.content === undefined) {
      assert.equal(answer.text, '');
      return;
    }
    const [type = ''] = Object.keys(response.content);
    assert.equal(answer.headers.get('content-type')?.startsWith(type), true, name);
    if (type !== 'application/json') return;
    const validator = validators.get(response) ?? Compile(resolveReferences(document, response.content[type].schema));
    validators.set(response, validator);
    const [conforms, errors] = validator.Errors(answer.body);
    assert.equal(conforms, true, `${name}: ${JSON.stringify(errors)} ${answer.text}`);
  };
}
