/** Rows of the route table: the service itself. SOURCE: docs/decisions.md, "Requests". */
import { Health } from '../../api/responses.ts';
import { openApiDocument } from '../openapi.ts';
import { publicRoute, type Route, type RouteGroup } from '../route.ts';

const PROOF_HEADER = 'leasehold-proof';

/** `groups` returns the whole table, which includes these rows. */
export function aboutRoutes(groups: () => readonly RouteGroup[]): readonly Route[] {
  let document: Uint8Array | null = null;
  return [
    publicRoute({
      id: 'readHealth',
      method: 'GET',
      path: '/api/v1/health',
      summary: 'Whether the service is ready; 503 while it is not.',
      data: Health,
      failureStatus: 503,
      isAlwaysServed: true,
      async handle({ status, prove }) {
        const proof = prove();
        const headers = proof === null ? {} : { [PROOF_HEADER]: proof };
        return { data: { status }, hasFailed: status !== 'ok', headers };
      },
    }),
    publicRoute({
      id: 'readOpenApiDocument',
      method: 'GET',
      path: '/openapi.json',
      summary: 'This document.',
      data: null,
      content: { mediaType: 'application/json', description: 'The OpenAPI document.' },
      async handle() {
        document ??= Buffer.from(JSON.stringify(openApiDocument(groups()), null, 2));
        return { bytes: document, type: 'application/json; charset=utf-8' };
      },
    }),
  ];
}
