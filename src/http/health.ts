/** Health: whether the service is ready, for everybody, and nothing else. SOURCE: decisions, "HTTP". */
import type { FastifyInstance } from 'fastify';
import { EmptyBody } from './schemas.ts';
import type { ServiceStatus } from './status.ts';

export const HEALTH_PATH = '/api/v1/health';

export function addHealth(app: FastifyInstance, status: () => ServiceStatus): void {
  app.get(HEALTH_PATH, { config: { isPublic: true }, schema: { querystring: EmptyBody } }, (_request, reply) => {
    const now = status();
    return reply.code(now === 'ok' ? 200 : 503).send({ data: { status: now } });
  });
}
