/** The OpenAPI document as the service serves it. */
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
