/** Health: whether the service is ready, for everybody, and nothing else. SOURCE: decisions, "HTTP". */
import type { FastifyInstance } from 'fastify';
import { EmptyBody } from './schemas.ts';
import type { ServiceStatus } from './status.ts';

export const HEALTH_PATH = '/api/v1/health';

/** With a nonce in `leasehold-proof-nonce` the response proves in `leasehold-proof` which data directory is served. */
export type ProveService = (nonce: string) => string | null;

const NONCE_HEADER = 'leasehold-proof-nonce';
const PROOF_HEADER = 'leasehold-proof';

export function addHealth(app: FastifyInstance, status: () => ServiceStatus, prove: ProveService): void {
  app.get(HEALTH_PATH, { config: { isPublic: true }, schema: { querystring: EmptyBody } }, (request, reply) => {
    const now = status();
    const nonce = request.headers[NONCE_HEADER];
    const proof = typeof nonce === 'string' ? prove(nonce) : null;
    if (proof !== null) reply.header(PROOF_HEADER, proof);
    return reply.code(now === 'ok' ? 200 : 503).send({ data: { status: now } });
  });
}
