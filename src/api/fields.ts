/** The schemas of single values, for those of objects that are not declared, and the ways to make schemas. */

import { type TObjectOptions, type TProperties, type TSchema, type TSchemaOptions, Type } from 'typebox';
import * as grammar from '../core/grammars.ts';
import type { Grammar } from '../engine/field.ts';
import { MAX_EXACT } from '../engine/kinds.ts';
import { LEASE_STATUSES } from '../vault/leases/lease.ts';
import { PASSKEY_ID } from '../vault/operators/operator.ts';
import { ACTIONS } from '../vault/policies/policy.ts';
import { METHOD } from '../vault/use/target.ts';

/** An object that rejects unknown fields. */
export const StrictObject = <T extends TProperties>(properties: T, options: TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });

/** One schema with two types, which serialisers and generated clients handle better than a union with null. */
export const Nullable = <T>(schema: TSchema & { readonly type: string; readonly enum?: readonly unknown[] }) =>
  Type.Unsafe<T | null>({
    ...schema,
    type: [schema.type, 'null'],
    ...(schema.enum === undefined ? {} : { enum: [...schema.enum, null] }),
  });

export const StringEnum = <Values extends string[]>(values: readonly [...Values], options: TSchemaOptions = {}) =>
  Type.Enum(values, { type: 'string', ...options });

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

export function grammarSchema(grammar: Grammar<string>, options: TSchemaOptions = {}) {
  const { pattern, minLength, maxLength, description, noun, annotations } = grammar;
  return Type.String({
    minLength,
    maxLength,
    ...(pattern === null ? {} : { pattern: pattern.source.replaceAll('\\/', '/') }),
    ...annotations,
    ...(noun === undefined ? {} : { title: capitalised(noun) }),
    ...(description === undefined ? {} : { description }),
    ...options,
  });
}

export const NonNegativeInteger = Type.Integer({ minimum: 0, maximum: MAX_EXACT });
export const PositiveInteger = Type.Integer({ minimum: 1, maximum: MAX_EXACT });
export const Text = Type.String();
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601 in UTC with milliseconds.' });
export const NullableTimestamp = Nullable<string>(Timestamp);
export const NullableText = Nullable<string>(Text);
export const NullableCount = Nullable<number>(NonNegativeInteger);
export const Path = grammarSchema(grammar.path);
export const PasskeyId = grammarSchema(PASSKEY_ID);
export const Base64url = Type.String({ minLength: 0, maxLength: 32_768, pattern: '^[A-Za-z0-9_-]*$' });
export const CredentialType = grammarSchema(grammar.credentialType);
export const Id = grammarSchema(grammar.id());
export const Action = StringEnum(ACTIONS, { title: 'Action' });
export const LeaseStatus = StringEnum(LEASE_STATUSES);
export const HttpMethod = grammarSchema(METHOD);
