/** The OpenAPI 3.1 document, generated from THE TABLE. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { HEALTH_PATH } from './health.ts';
import type { Route } from './route.ts';
import { ROUTES } from './routes/table.ts';
import { EmptyBody, ErrorBody, Health, Meta } from './schemas.ts';

type Json = Record<string, unknown>;

const json = (schema: unknown, description: string): Json => ({
  description,
  content: { 'application/json': { schema } },
});

function answerOf(row: Route): Json {
  if (row.data === null) return { description: 'Done.' };
  if (row.data === 'entries') {
    return {
      description: 'One audit entry a line.',
      content: { 'application/x-ndjson': { schema: { type: 'string' } } },
    };
  }
  const properties: Record<string, TSchema> = { data: row.data };
  if (row.meta === 'always') properties['meta'] = Meta;
  if (row.meta === 'paged') properties['meta'] = Type.Optional(Meta);
  return json(Type.Object(properties), 'Done.');
}

function parametersOf(row: Route): Json[] {
  const inPath = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
    ...(name === 'path' ? { description: 'A credential path; its slashes may be written as they are or as %2F.' } : {}),
  }));
  const inQuery = Object.entries(row.query.properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema,
  }));
  const inHeaders = Object.entries(row.headers).map(([name, description]) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
  }));
  return [...inPath, ...inQuery, ...inHeaders];
}

function operationOf(row: Route, path: string): Json {
  const who = { public: 'Everybody.', agent: 'Agents and the administrator.', admin: 'The administrator.' }[row.who];
  return {
    operationId: `${row.method.toLowerCase()}${path.replaceAll(/[^A-Za-z]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: row.summary,
    description: who,
    parameters: parametersOf(row),
    ...(row.body === null
      ? {}
      : {
          requestBody: {
            required: Object.keys(row.body.properties).length > 0,
            content: { 'application/json': { schema: row.body } },
          },
        }),
    responses: { [row.status]: answerOf(row), default: json({ $ref: '#/components/schemas/Error' }, 'Refused.') },
    security: row.who === 'public' ? [] : [{ bearer: [] }],
  };
}

export const OPENAPI_PATH = '/openapi.json';

/** Serves the document to everybody. */
export function addOpenApi(app: FastifyInstance): void {
  const document = JSON.stringify(openApiDocument(), null, 2);
  app.get(OPENAPI_PATH, { config: { isPublic: true }, schema: { querystring: EmptyBody } }, (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(document),
  );
}

function openApiDocument(): Json {
  const paths: Record<string, Json> = {};
  for (const row of ROUTES) {
    for (const path of [row.path, ...row.aliases]) {
      paths[path] = { ...paths[path], [row.method.toLowerCase()]: operationOf(row, path) };
    }
  }
  paths[HEALTH_PATH] = {
    get: {
      operationId: 'getApiV1Health',
      summary: 'Whether the service is ready; 503 while it is not.',
      responses: {
        200: json(Type.Object({ data: Health }), 'Ready.'),
        503: json(Type.Object({ data: Health }), 'Not ready.'),
      },
      security: [],
    },
  };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Leasehold',
      description: 'A credential vault for AI agents: credentials are held by lease, never owned.',
      version: readVersion(),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths,
    components: {
      schemas: { Error: ErrorBody },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: "The administrator's token or a session." },
      },
    },
  };
}

function readVersion(): string {
  const text = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
  const { version }: { version?: unknown } = JSON.parse(text);
  return String(version);
}
