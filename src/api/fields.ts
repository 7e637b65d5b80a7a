/**
 * The schemas of single fields. The grammars of strings are those of `src/core/grammars.ts`, whose parsers
 * apply them, because they name the violated rule.
 */

import { type TObjectOptions, type TProperties, type TSchema, type TSchemaOptions, Type } from 'typebox';
import * as grammar from '../core/grammars.ts';
import { MAX_PATH_LENGTH, PATH_PART } from '../core/path.ts';
import type { Grammar } from '../engine/field.ts';
import { MAX_VALUE_BYTES } from '../vault/credentials/credential.ts';
import { LEASE_STATUSES } from '../vault/leases/lease.ts';
import { LABEL, PASSKEY_ID, ROLES } from '../vault/operators/operator.ts';
import { ACTIONS, MAX_TTL_SECONDS } from '../vault/policies/policy.ts';
import { SIGN_IN_CODE } from '../vault/sessions/sign-in-operations.ts';
import { METHOD } from '../vault/use/target.ts';
import { HEADER_NAME, HEADER_VALUE, MAX_PURPOSE_LENGTH, PURPOSE } from '../vault/use/upstream-url.ts';

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
    pattern: pattern.source.replaceAll('\\/', '/'),
    ...annotations,
    ...(noun === undefined ? {} : { title: capitalised(noun) }),
    ...(description === undefined ? {} : { description }),
    ...options,
  });
}

/** An integer of at most 15 digits is exact in JavaScript and JSON. */
const MAX_INTEGER = 999_999_999_999_999;
export const NonNegativeInteger = Type.Integer({ minimum: 0, maximum: MAX_INTEGER });
export const PositiveInteger = Type.Integer({ minimum: 1, maximum: MAX_INTEGER });

export const paging = {
  limit: Type.Optional(
    Type.Integer({ ...PositiveInteger, description: 'The maximum number of entries; values over 1000 count as 1000.' }),
  ),
  offset: Type.Optional(Type.Integer({ ...NonNegativeInteger, description: 'The number of entries to skip.' })),
};

export const Text = Type.String();
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601 in UTC with milliseconds.' });
export const NullableTimestamp = Nullable<string>(Timestamp);
export const SecondsLeft = Type.Integer({
  ...NonNegativeInteger,
  description: 'Time until `expires_at`, in whole seconds.',
});
export const NullableText = Nullable<string>(Text);
export const NullableCount = Nullable<number>(NonNegativeInteger);

interface PageLimits {
  readonly most: number;
  readonly byDefault: number;
}

export const MATRIX_LIMITS: { readonly agents: PageLimits; readonly paths: PageLimits } = {
  agents: { most: 50, byDefault: 20 },
  paths: { most: 100, byDefault: 50 },
};
export const TREE_LIMITS: PageLimits = { most: 1000, byDefault: 100 };
export const SEARCH_LIMITS: PageLimits = { most: 50, byDefault: 20 };
export const MAX_SEARCH_LENGTH = 128;
export const MAX_AGENT_PREFIX_LENGTH = 63;

export const Path = grammarSchema(grammar.path);
/** A path that a base URL can have: `-` or `-n` as a segment would end it. */
export const BaseUrlPath = Type.String({
  minLength: 1,
  maxLength: MAX_PATH_LENGTH,
  pattern: String.raw`^(?!(?:.*/)?-\d*(?:/|$))${PATH_PART}$`,
  description: `${grammar.path.description} No segment is \`-\` or \`-\` and digits.`,
});
export const AgentName = grammarSchema(grammar.agentName);
export const PrincipalName = grammarSchema(grammar.principalName);
export const ActorName = grammarSchema(grammar.actorName);
const Role = StringEnum(ROLES, { title: 'Role' });
export const Roles = Type.Array(Role, { minItems: 1, maxItems: ROLES.length });
export const PasskeyId = grammarSchema(PASSKEY_ID);
export const PasskeyLabel = grammarSchema(LABEL);
export const SignInCode = Type.String({ minLength: 1, maxLength: 4096, pattern: SIGN_IN_CODE.source });
export const Base64url = Type.String({ minLength: 0, maxLength: 32_768, pattern: '^[A-Za-z0-9_-]*$' });
export const CredentialType = grammarSchema(grammar.credentialType);
export const Id = grammarSchema(grammar.id());
export const Value = Type.String({
  minLength: 1,
  maxLength: MAX_VALUE_BYTES,
  description: `1 to ${MAX_VALUE_BYTES} bytes of UTF-8.`,
});
export const Description = grammarSchema(grammar.description);
export const Signature = Type.String({
  minLength: 4,
  maxLength: 4096,
  pattern: '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$',
  contentEncoding: 'base64',
  description: 'Base64 of the Ed25519 signature over the decoded nonce.',
});
export const Action = StringEnum(ACTIONS, { title: 'Action' });
export const LeaseStatus = StringEnum(LEASE_STATUSES);
export const Ttl = Type.Integer({ minimum: 1, maximum: MAX_TTL_SECONDS, title: 'Seconds' });

export const HttpMethod = grammarSchema(METHOD);
export const RequestHeaders = Type.Record(
  Type.String({ pattern: HEADER_NAME.source }),
  Type.String({ minLength: 0, maxLength: 16_384, pattern: HEADER_VALUE.source }),
  { additionalProperties: false, title: 'Headers', description: 'Headers that could carry authority are removed.' },
);
export const Purpose = Type.String({
  minLength: 1,
  maxLength: MAX_PURPOSE_LENGTH,
  pattern: PURPOSE.source,
  description: 'A remark for the audit log.',
});
