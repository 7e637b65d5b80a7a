/**
 * The schemas of single fields. The grammars of strings are the regular expressions and limits of `core`, whose parsers
 * apply them, because they name the violated rule.
 */
import type { TObjectOptions, TProperties, TSchema, TSchemaOptions, TStringOptions } from 'typebox';
import { MAX_DESCRIPTION_LENGTH } from '../core/agent.ts';
import {
  APPROVAL_EXTENTS,
  APPROVAL_SCOPE,
  APPROVED_ACTIONS,
  MAX_APPROVAL_TIMEOUT_SECONDS,
  MAX_QUORUM,
} from '../core/approval-rule.ts';
import { SERVICES } from '../core/catalogue/catalogue.ts';
import { MAX_VALUE_BYTES } from '../core/credential.ts';
import { SLOT_KINDS, SLOT_NAME } from '../core/keyset.ts';
import { LEASE_STATUSES } from '../core/lease.ts';
import { ACTOR_NAME, AGENT_NAME, CREDENTIAL_TYPE, POLICY_NAME, PRINCIPAL_NAME, UUID } from '../core/names.ts';
import { SIGN_IN_CODE } from '../core/operations/sign-in.ts';
import { ROLES } from '../core/operator.ts';
import { LABEL, MAX_LABEL_LENGTH, PASSKEY_ID } from '../core/passkey.ts';
import { MAX_PATH_LENGTH, PATH_PART } from '../core/path.ts';
import { ACTIONS, MAX_RESOURCES, MAX_TTL_SECONDS, PRINCIPAL } from '../core/policy.ts';
import { MAX_LIMIT } from '../core/policy-limits.ts';
import { MAX_TARGETS, METHOD } from '../core/target.ts';
import { HEADER_NAME, HEADER_VALUE, MAX_PURPOSE_LENGTH, PURPOSE } from '../core/use-text.ts';
import { Type } from './schema.ts';

/** An object that rejects other fields. */
export const object = <T extends TProperties>(properties: T, options: TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });

/**
 * The field or null, as one schema with two types, which serialisers and generated clients handle better than a union.
 */
export const nullable = <T>(schema: TSchema & { readonly type: string }) =>
  Type.Unsafe<T | null>({ ...schema, type: [schema.type, 'null'] });

/** An enum of words. */
export const word = <Words extends string[]>(words: readonly [...Words], options: TSchemaOptions = {}) =>
  Type.Enum(words, { type: 'string', ...options });

/** An integer of at most 15 digits is exact in JavaScript and JSON. */
const MAX_WHOLE = 999_999_999_999_999;

/** An integer of at least `least`. */
export const whole = (least: number, options: TSchemaOptions = {}) =>
  Type.Integer({ minimum: least, maximum: MAX_WHOLE, ...options });

/** The query parameters of a page. */
export const paging = {
  limit: Type.Optional(whole(1, { description: 'The maximum number of entries; values over 1000 count as 1000.' })),
  offset: Type.Optional(whole(0, { description: 'The number of entries to skip.' })),
};

const text = (grammar: RegExp | string, minLength: number, maxLength: number, options: TStringOptions = {}) =>
  Type.String({
    minLength,
    maxLength,
    pattern: typeof grammar === 'string' ? grammar : grammar.source,
    ...options,
  });

export const Text = Type.String();
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601 in UTC with milliseconds.' });
export const NullableTimestamp = nullable<string>(Timestamp);
export const SecondsLeft = whole(0, { description: 'Time until `expires_at`, in whole seconds.' });
export const NullableText = nullable<string>(Text);
export const NullableCount = nullable<number>(whole(0));

const PATH_RULE =
  '1 to 32 segments separated by single slashes, each 1 to 128 of `A-Z a-z 0-9 . _ - @ : + = ~`, never `.` or `..`.';
export const Path = text(`^${PATH_PART}$`, 1, MAX_PATH_LENGTH, { description: PATH_RULE });
/** A path that a base URL can have: `-` or `-n` as a segment would end it. */
export const BaseUrlPath = text(String.raw`^(?!(?:.*/)?-\d*(?:/|$))${PATH_PART}$`, 1, MAX_PATH_LENGTH, {
  description: `${PATH_RULE} No segment is \`-\` or \`-\` and digits.`,
});
const Resource = text(
  String.raw`^(?:\*|(?=.{1,${MAX_PATH_LENGTH}}(?:/\*)?$)${PATH_PART}(?:/\*)?)$`,
  1,
  MAX_PATH_LENGTH + 2,
  {
    title: 'Pattern',
    description: 'A path; `prefix/*` for everything below `prefix/` at any depth; or `*`.',
  },
);
export const AgentName = text(AGENT_NAME, 1, 63, { description: 'Not `admin`, `service` or `anonymous`.' });
export const OperatorName = text(AGENT_NAME, 1, 63, {
  description: 'Without the prefix `operator:`, which the log and logins add.',
});
/** Who logs in. */
export const PrincipalName = text(PRINCIPAL_NAME, 1, 72, {
  description: 'An agent’s name, or `operator:<name>`.',
});
/** An agent's name, an operator's with the prefix `operator:`, or a reserved one. */
export const ActorName = text(ACTOR_NAME, 1, 72);
export const Role = word(ROLES, { title: 'Role' });
export const Roles = Type.Array(Role, { minItems: 1, maxItems: ROLES.length });
export const PasskeyId = text(PASSKEY_ID, 1, 1364, { description: 'Base64url, as the authenticator made it.' });
export const PasskeyLabel = text(LABEL, 1, MAX_LABEL_LENGTH, { description: 'Without control characters.' });
/** Of a code or a state. */
export const SignInCode = text(SIGN_IN_CODE, 1, 4096);
/** Base64url of bytes that the browser or the service made. */
export const Base64url = text('^[A-Za-z0-9_-]*$', 0, 32_768);
export const PolicyName = text(POLICY_NAME, 1, 128);
export const Principal = text(PRINCIPAL, 7, 73, {
  description: '`agent:<name>` or `operator:<name>`, or with one `*` at the end.',
});
export const CredentialType = text(CREDENTIAL_TYPE, 1, 64);
export const SlotName = text(SLOT_NAME, 1, 63);
export const SlotKind = word(SLOT_KINDS);
/** Base64 of 32 bytes. */
export const SlotPublicKey = Type.String({
  minLength: 44,
  maxLength: 44,
  description: 'Base64 of an X25519 public key.',
});
export const Id = text(UUID, 36, 36, { format: 'uuid' });
export const Value = Type.String({
  minLength: 1,
  maxLength: MAX_VALUE_BYTES,
  description: `1 to ${MAX_VALUE_BYTES} bytes of UTF-8.`,
});
export const Description = text(String.raw`^[^\u0000]*$`, 0, MAX_DESCRIPTION_LENGTH);
/** Canonical base64: the unused bits of the last character are zero. */
export const PublicKey = text('^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$', 44, 44, {
  contentEncoding: 'base64',
  description: 'Base64 of the 32 raw bytes of an Ed25519 key.',
});
export const Signature = text(
  '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$',
  4,
  4096,
  { contentEncoding: 'base64', description: 'Base64 of the Ed25519 signature over the decoded nonce.' },
);
export const Action = word(ACTIONS, { title: 'Action' });
export const LeaseStatus = word(LEASE_STATUSES);
export const Resources = Type.Array(Resource, { minItems: 1, maxItems: MAX_RESOURCES });
export const Actions = Type.Array(Action, { minItems: 1 });
export const Limits = object(
  {
    uses_per_hour: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LIMIT })),
    bytes_per_hour: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_LIMIT, description: 'Of the bodies of requests and responses.' }),
    ),
    concurrent: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LIMIT })),
  },
  { minProperties: 1, title: 'Limits', description: 'On the uses of each agent.' },
);
const approval = {
  for: word(APPROVED_ACTIONS, { description: "One of the policy's actions." }),
  each: word(APPROVAL_EXTENTS, {
    description: 'What one approval covers: `request` by default; only that for `retrieve`.',
  }),
  scope: text(APPROVAL_SCOPE, 4, 16, {
    description: '`once` by default, `session`, `<n> uses` or `<n> seconds`; only `once` for `retrieve`.',
  }),
  quorum: Type.Integer({
    minimum: 1,
    maximum: MAX_QUORUM,
    description: 'How many operators must approve; by default 1.',
  }),
  timeout: Type.Integer({
    minimum: 1,
    maximum: MAX_APPROVAL_TIMEOUT_SECONDS,
    description: 'For how many seconds a request waits for an answer; 300 by default.',
  }),
};
export const PolicyApproval = object(approval, { title: 'Approval', description: 'People must approve the action.' });
/** As a request writes it: all but the action may be left out. */
export const ApprovalFields = object(
  {
    for: approval.for,
    each: Type.Optional(approval.each),
    scope: Type.Optional(approval.scope),
    quorum: Type.Optional(approval.quorum),
    timeout: Type.Optional(approval.timeout),
  },
  { title: 'Approval', description: 'People must approve the action.' },
);
export const Ttl = Type.Integer({ minimum: 1, maximum: MAX_TTL_SECONDS, title: 'Seconds' });

/** An object whose keys the caller or an upstream chooses. */
export const map = <T extends TSchema>(key: RegExp | null, values: T, options: TObjectOptions = {}) =>
  Type.Record(Type.String(key === null ? {} : { pattern: key.source }), values, {
    additionalProperties: false,
    ...options,
  });
export const SlotParameters = map(
  /^[a-z_]{1,32}$/,
  Type.Union([Type.String({ maxLength: 8192 }), Type.Integer({ minimum: 1, maximum: 999_999_999 })]),
  {
    title: 'SlotParameters',
    description: 'What a slot needs to get its secret again, such as a salt.',
  },
);
const list = <T extends TSchema>(items: T, minItems: number, maxItems: number, options: TSchemaOptions = {}) =>
  Type.Array(items, { minItems, maxItems, ...options });
const target = {
  origin: Type.String({
    maxLength: 300,
    description: '`https://host`, `https://*.host` for one label, or with a port.',
  }),
  paths: list(Type.String({ maxLength: MAX_PATH_LENGTH + 3, title: 'Pattern' }), 1, 64, {
    description: '`/*` by default.',
  }),
  methods: list(Type.String({ maxLength: 16, title: 'Method' }), 1, 32, {
    description: 'GET, HEAD, POST, PUT, PATCH and DELETE by default.',
  }),
  allow_networks: list(Type.String({ maxLength: 49, title: 'Network' }), 0, 32, {
    description: 'Networks that would be refused otherwise.',
  }),
  ca_pem: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    maxLength: 65_536,
    description: 'The certificate authorities of this target, in place of the public ones.',
  }),
};
export const Target = object(target, { title: 'Target' });
/** As a request writes it: all but the origin may be left out. */
export const TargetFields = object(
  {
    origin: target.origin,
    paths: Type.Optional(target.paths),
    methods: Type.Optional(target.methods),
    allow_networks: Type.Optional(target.allow_networks),
    ca_pem: Type.Optional(target.ca_pem),
  },
  { title: 'Target' },
);
export const Targets = list(Target, 1, MAX_TARGETS);
export const Placement = object(
  {
    kind: word(['bearer', 'header', 'basic', 'query']),
    name: Type.Optional(Type.String({ maxLength: 64, description: 'Of the header or the query parameter.' })),
    template: Type.Optional(Type.String({ maxLength: 256, description: 'Contains `{value}` once.' })),
    username: Type.Optional(Type.String({ maxLength: 128, description: 'Without it the value is `user:password`.' })),
  },
  { title: 'Placement' },
);
export const Service = word(
  SERVICES.map(({ name }) => name),
  { title: 'Service', description: 'A row of the catalogue.' },
);
export const HttpMethod = text(METHOD, 1, 16, { description: 'An HTTP method in capitals, not CONNECT or TRACE.' });
export const RequestHeaders = map(HEADER_NAME, text(HEADER_VALUE, 0, 16_384), {
  title: 'Headers',
  description: 'Headers that could carry authority are removed.',
});
export const Purpose = text(PURPOSE, 1, MAX_PURPOSE_LENGTH, { description: 'A remark for the log.' });
