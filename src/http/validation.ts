/**
 * Validation by the rows' schemas: fields, types, numbers, enums and counts. Parsers of single texts validate strings,
 * because they name the violated rule; the schemas only document those grammars. A handler checks a body that needs one
 * of several fields. INVARIANT: names, paths and ids reach the vault only as the branded types that the parsers return,
 * which the compiler checks.
 */
import type { FastifyRequest, FastifyServerOptions } from 'fastify';
import type { TSchema } from 'typebox';
import { Nothing } from '../api/requests.ts';
import { ApiError } from '../engine/errors.ts';
import type { Route } from './route.ts';

const LEFT_TO_CORE = ['pattern', 'format', 'minLength', 'maxLength', 'contentEncoding', 'minProperties'];

type Ajv = Parameters<NonNullable<NonNullable<FastifyServerOptions['ajv']>['onCreate']>>[0];

export const VALIDATOR = {
  customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: false, verbose: true },
  onCreate(ajv: Ajv): void {
    for (const keyword of LEFT_TO_CORE) ajv.removeKeyword(keyword).addKeyword(keyword);
  },
} satisfies FastifyServerOptions['ajv'];

type Validate = ReturnType<FastifyRequest['compileValidationSchema']>;

/** Shared by all servers of the process. WHY not at startup: compiling all of them takes a quarter of it. */
const validators = new Map<TSchema, Validate>();

/** Validates the body, unless its handler does, and then the query. @throws INVALID_REQUEST */
export function checkSchemas(row: Route, request: FastifyRequest): void {
  if (row.method !== 'GET' && !row.isBodyDeclared) check('body', row.body ?? Nothing, request.body ?? null, request);
  check('query', row.query, request.query, request);
}

function check(part: string, schema: TSchema, value: unknown, request: FastifyRequest): void {
  let validate = validators.get(schema);
  if (validate === undefined) {
    validate = request.compileValidationSchema(schema);
    validators.set(schema, validate);
  }
  if (validate(value) !== true) throw toValidationError(part, validate.errors?.[0]);
}

type SchemaError = Partial<NonNullable<Validate['errors']>[number]>;

interface FieldSchema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: FieldSchema;
  readonly properties?: object;
  readonly patternProperties?: object;
}

function ruleOf({ type, title, enum: words, minimum, maximum, minItems, maxItems, items }: FieldSchema): string {
  if (words !== undefined) return `must be one of ${words.join(', ')}`;
  if (type === 'integer') {
    return `must be a whole number${title === undefined ? '' : ` of ${title.toLowerCase()}`}, ${minimum} to ${maximum}`;
  }
  if (type === 'array') {
    const count = maxItems === undefined ? `${minItems} or more` : `${minItems} to ${maxItems}`;
    return `must be an array of ${count} ${items?.title?.toLowerCase()}s`;
  }
  const types = [type ?? 'string'].flat().join(' or ');
  return `must be ${types.startsWith('o') ? 'an' : 'a'} ${types}`;
}

/** The keys of a map are the request's own, and stay out of messages. */
const IN_MAP = /\/patternProperties\//;

/** The location in the body or the query, such as `targets[0].origin`; empty for the whole. */
function locate({ instancePath = '', schemaPath = '' }: SchemaError): string {
  const [, ...keys] = instancePath.split('/');
  const known = IN_MAP.test(schemaPath) ? keys.slice(0, 1) : keys;
  return known.map((key, at) => (/^\d+$/.test(key) ? `[${key}]` : at === 0 ? key : `.${key}`)).join('');
}

/** Names the field and the violated rule, never a key or value of the request. */
function toValidationError(part: string, error: SchemaError = {}): ApiError {
  const schema = (error.parentSchema ?? {}) as FieldSchema;
  const location = locate(error);
  const field = location || part;
  const invalid = (where: string, rule: string): ApiError => new ApiError('INVALID_REQUEST', `${where}: ${rule}`);
  if (error.keyword === 'additionalProperties') {
    if (schema.patternProperties !== undefined) return invalid(field, 'has an invalid name');
    const noun = part === 'query' ? 'parameter' : 'field';
    const known = Object.keys(schema.properties ?? {});
    const names = known.length === 0 ? `no ${noun}s are allowed` : `the allowed ${noun}s are ${known.join(', ')}`;
    return invalid(field, `has an unknown ${noun}; ${names}`);
  }
  if (error.keyword === 'required') {
    const missing = String(error.params?.['missingProperty']);
    return invalid(location === '' ? missing : `${location}.${missing}`, 'is required');
  }
  if (part === 'body' && location === '') return invalid('body', 'must be a JSON object');
  if (IN_MAP.test(error.schemaPath ?? '')) return invalid(field, 'must have strings as values');
  const isRepeated = part === 'query' && Array.isArray(error.data);
  return invalid(field, isRepeated ? 'must be given once' : ruleOf(schema));
}
