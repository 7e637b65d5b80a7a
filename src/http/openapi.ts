/** The OpenAPI 3.1 document, generated from the route table and its declarations. */
import type { TSchema } from 'typebox';
import { Type } from 'typebox';
import * as audit from '../api/audit.ts';
import { Action, LeaseStatus } from '../api/fields.ts';
import { knownComponents } from '../api/resource-schemas.ts';
import * as responses from '../api/responses.ts';
import * as signIn from '../api/sign-in.ts';
import { PERMISSIONS, type Permission } from '../core/permissions.ts';
import { readVersion } from '../platform/installation.ts';
import type { Route, RouteGroup } from './route.ts';

type Json = Record<string, unknown>;

/** Compares schemas by their text, because an optional field contains a copy. */
const keyOf = (schema: unknown): string => JSON.stringify(schema) ?? '';

/** The schemas that the document names. */
function components(): readonly (readonly [name: string, schema: unknown])[] {
  const named = [
    ...Object.entries({ Action, LeaseStatus }),
    ...knownComponents(),
    ...[audit, responses, signIn].flatMap((module) => Object.entries(module)),
  ];
  return named.filter(([name, schema]) => typeof schema === 'object' && name !== 'Nothing');
}

const toReference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

/** Replaces schemas that have a name by references. */
class References {
  readonly #names: ReadonlyMap<string, string>;

  constructor(named: ReturnType<typeof components>) {
    this.#names = new Map(named.map(([name, schema]) => [keyOf(schema), name]));
  }

  replace(schema: unknown): unknown {
    const name = this.#names.get(keyOf(schema));
    return name === undefined ? this.replaceWithin(schema) : toReference(name);
  }

  replaceWithin(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.replace(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, this.replace(inner)]));
  }
}

const json = (schema: unknown, description: string): Json => ({
  description,
  content: { 'application/json': { schema } },
});

const envelopeName = ({ id }: Route): string => `${id.slice(0, 1).toUpperCase()}${id.slice(1)}Response`;

function envelopeOf(row: Route): TSchema {
  const meta = { always: { meta: responses.Meta }, paged: { meta: Type.Optional(responses.Meta) }, never: {} }[
    row.meta
  ];
  return Type.Object({ data: row.data ?? Type.Null(), ...meta }, { additionalProperties: false });
}

function responsesOf(row: Route): Json {
  const success = (description: string): Json => {
    if (row.content !== null) {
      const schema = { type: row.content.mediaType === 'application/json' ? 'object' : 'string' };
      return { description: row.content.description, content: { [row.content.mediaType]: { schema } } };
    }
    return row.data === null ? { description } : json(toReference(envelopeName(row)), description);
  };
  return {
    [row.status]: success('Done.'),
    ...(row.failureStatus === null ? {} : { [row.failureStatus]: success('Not ready.') }),
    default: json(toReference('ErrorBody'), 'Rejected.'),
  };
}

function parametersOf(row: Route, references: References): Json[] {
  const { params, query, headers } = row;
  const parameters = (place: string, schemas: Readonly<Record<string, TSchema>>, required: readonly string[]): Json[] =>
    Object.entries(schemas).map(([name, schema]) => {
      const { description, ...rest } = schema as TSchema & { readonly description?: string };
      const described = description === undefined ? {} : { description };
      return { name, in: place, required: required.includes(name), ...described, schema: references.replace(rest) };
    });
  return [
    ...parameters('path', params, Object.keys(params)),
    ...parameters('query', query.properties, query.required ?? []),
    ...parameters('header', headers, []),
  ];
}

function callersOf(permission: Permission): string {
  const { role, agents } = PERMISSIONS[permission];
  return `The administrator, operators with the role ${role}${agents ? ', and agents' : ''}.`;
}

function operationOf(row: Route, tag: string, references: References): Json {
  const who = row.permission === null ? 'All clients.' : callersOf(row.permission);
  const aliases = row.aliases.map((path) => ` Also served at \`${path}\`.`).join('');
  const hasBody = row.body !== null && Object.keys(row.body.properties).length > 0;
  return {
    operationId: row.id,
    tags: [tag],
    summary: row.summary,
    description: `${who}${aliases}`,
    parameters: parametersOf(row, references),
    ...(hasBody
      ? {
          requestBody: {
            required: (row.body.required ?? []).length > 0,
            content: { 'application/json': { schema: references.replace(row.body) } },
          },
        }
      : {}),
    responses: responsesOf(row),
    security: row.permission === null ? [] : [{ bearer: [] }],
  };
}

export function openApiDocument(groups: readonly RouteGroup[]): Json {
  const named = components();
  const references = new References(named);
  const paths: Record<string, Json> = {};
  for (const { tag, routes } of groups) {
    for (const row of routes) {
      paths[row.path] = { ...paths[row.path], [row.method.toLowerCase()]: operationOf(row, tag, references) };
    }
  }
  const envelopes = groups.flatMap(({ routes }) =>
    routes.filter(({ data }) => data !== null).map((row): [string, unknown] => [envelopeName(row), envelopeOf(row)]),
  );
  const schemas = [...named, ...envelopes].map(([name, schema]) => [name, references.replaceWithin(schema)]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Leasehold',
      description: 'A credential vault for AI agents, which lease credentials for a limited time.',
      version: readVersion(),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: groups.map(({ tag, description }) => ({ name: tag, description })),
    paths,
    components: {
      schemas: Object.fromEntries(schemas),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: "The administrator's token or a session." },
      },
    },
  };
}
