/**
 * Validation by the rows' schemas: fields, types, numbers, words and counts. Text is left to core's parsers: they apply the grammars that
 * the schemas show, and name the rule that was broken. So is a body in which one of several fields must be given, to its handler.
 * INVARIANT: names, paths and ids reach the vault only as the branded types that such parsers return: the compiler finds one that
 * nobody parsed.
 */
import type { FastifyServerOptions } from 'fastify';
import { ApiError } from '../core/errors.ts';

const LEFT_TO_CORE = ['pattern', 'format', 'minLength', 'maxLength', 'contentEncoding', 'minProperties'];

type Ajv = Parameters<NonNullable<NonNullable<FastifyServerOptions['ajv']>['onCreate']>>[0];

/** For the framework's validator. */
export const VALIDATOR = {
  customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: false, verbose: true },
  onCreate(ajv: Ajv): void {
    for (const keyword of LEFT_TO_CORE) ajv.removeKeyword(keyword).addKeyword(keyword);
  },
} satisfies FastifyServerOptions['ajv'];

interface SchemaError {
  readonly instancePath?: string;
  readonly keyword?: string;
  readonly params?: Record<string, unknown>;
  /** What was sent, and the schema that it breaks. */
  readonly data?: unknown;
  readonly parentSchema?: unknown;
}

interface FieldSchema {
  readonly type?: string;
  /** What one of it is called. */
  readonly title?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: FieldSchema;
}

/** The rule that a field's schema states, as the end of a sentence. */
function ruleOf({ type, title, enum: words, minimum, maximum, minItems, maxItems, items }: FieldSchema): string {
  if (words !== undefined) return `must be one of ${words.join(', ')}`;
  if (type === 'integer') {
    return `must be a whole number${title === undefined ? '' : ` of ${title.toLowerCase()}`}, ${minimum} to ${maximum}`;
  }
  if (type === 'array') {
    const count = maxItems === undefined ? `${minItems} or more` : `${minItems} to ${maxItems}`;
    return `must be an array of ${count} ${items?.title?.toLowerCase()}s`;
  }
  return `must be a ${type}`;
}

/** Names the field and the rule that a schema found broken; never a key or a value that was sent. */
export function toValidationError(part: string, error: SchemaError | undefined, known: readonly string[]): ApiError {
  const [, name = part, index] = (error?.instancePath ?? '').split('/');
  const field = index === undefined ? name : `${name}[${index}]`;
  if (error?.keyword === 'additionalProperties') {
    const names = known.length === 0 ? 'there are none' : `there are ${known.join(', ')}`;
    const noun = part === 'query' ? 'parameter' : 'field';
    return new ApiError('INVALID_REQUEST', `${part}: has a ${noun} that does not exist; ${names}`);
  }
  if (error?.keyword === 'required') {
    return new ApiError('INVALID_REQUEST', `${String(error.params?.['missingProperty'])}: is required`);
  }
  if (part === 'body' && name === part) return new ApiError('INVALID_REQUEST', 'body: must be a JSON object');
  const isRepeated = part === 'query' && Array.isArray(error?.data);
  const rule = isRepeated ? 'must be given once' : ruleOf((error?.parentSchema ?? {}) as FieldSchema);
  return new ApiError('INVALID_REQUEST', `${field}: ${rule}`);
}
