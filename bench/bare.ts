// What retrieval is held against: one Fastify route that answers the same shape by the same schema, and does nothing else.
// A program of its own; prints its address.

import fastify from 'fastify';
import { Type } from 'typebox';
import { RetrieveResponse } from '../src/api/responses.ts';
import { LEASE_ID, VALUE } from './answer.ts';

const app = fastify({ logger: false });
app.get<{ Params: { '*': string } }>(
  '/api/v1/credentials/*',
  { schema: { response: { 200: Type.Object({ data: RetrieveResponse }) } } },
  async (request) => ({
    data: { path: request.params['*'], value: VALUE, lease_id: LEASE_ID, expires_at: '2026-01-01T00:00:00.000Z' },
  }),
);
console.log(await app.listen({ host: '127.0.0.1', port: 0 }));
