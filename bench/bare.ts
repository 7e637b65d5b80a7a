// The baseline of retrieval: a Fastify route with the same response schema that does nothing else. Prints its address.

import fastify from 'fastify';
import { Type } from 'typebox';
import { replySchema } from '../src/api/resource-schemas.ts';
import { RetrievedCredential } from '../src/vault/credentials/credential.ts';
import { VALUE } from './targets.ts';

// As long as the service's, so that both send as many bytes.
const LEASE_ID = '01890a5d-ac96-774b-bcce-b302099a8057';

const app = fastify({ logger: false });
app.get<{ Params: { '*': string } }>(
  '/api/v1/credentials/*',
  { schema: { response: { 200: Type.Object({ data: replySchema(RetrievedCredential) }) } } },
  async (request) => ({
    data: { path: request.params['*'], value: VALUE, lease_id: LEASE_ID, expires_at: '2026-01-01T00:00:00.000Z' },
  }),
);
console.log(await app.listen({ host: '127.0.0.1', port: 0 }));
