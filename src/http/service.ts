/** What needs no token: health, and the OpenAPI document. SOURCE: decisions, "HTTP". */
import type { FastifyInstance } from 'fastify';
import { addRefusals } from './handlers.ts';
import { openApiDocument } from './openapi.ts';
import type { ServiceStatus } from './status.ts';

export const HEALTH_PATH = '/api/v1/health';
export const OPENAPI_PATH = '/openapi.json';

export function addServiceRoutes(app: FastifyInstance, status: () => ServiceStatus): void {
  const document = JSON.stringify(openApiDocument(), null, 2);
  app.get(HEALTH_PATH, { config: { isPublic: true } }, (_request, reply) => {
    const now = status();
    return reply.code(now === 'ok' ? 200 : 503).send({ data: { status: now } });
  });
  app.get(OPENAPI_PATH, { config: { isPublic: true } }, (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(document),
  );
  for (const url of [HEALTH_PATH, OPENAPI_PATH]) addRefusals(app, url, ['GET']);
}
