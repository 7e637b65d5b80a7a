/**
 * The shapes of requests and answers: one schema each for validation, serialisation, types and the OpenAPI document.
 * SOURCE: interface, sections 2 and 4. What a grammar decides (names, paths, patterns) is left to core's parsers.
 */
import { type TProperties, type TSchema, Type } from 'typebox';

const strict = { additionalProperties: false };
const object = <T extends TProperties>(properties: T) => Type.Object(properties, strict);
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const Timestamp = Type.String({ description: 'ISO 8601 in UTC with milliseconds.' });
const Text = Type.String();

export const Data = <T extends TSchema>(schema: T) => Type.Object({ data: schema });

// Queries: every value is text, and is parsed by the one grammar of its kind.
const paging = {
  limit: Type.Optional(Type.String({ description: 'Entries at most; over 1000 is cut to 1000.' })),
  offset: Type.Optional(Type.String({ description: 'How many to skip.' })),
};
export const PageQuery = object(paging);
export const CredentialsQuery = object({ type: Type.Optional(Text), ...paging });
export const CredentialQuery = object({
  version: Type.Optional(Type.String({ description: 'An earlier version; the newest where it is left out.' })),
  ttl: Type.Optional(Type.String({ description: 'Seconds; a shorter lease than the policy allows.' })),
  view: Type.Optional(Type.String({ description: '`metadata`: no value and no lease; needs `list`.' })),
});
export const LeasesQuery = object({
  agent: Type.Optional(Text),
  path: Type.Optional(Text),
  status: Type.Optional(Type.String({ description: 'active, expired or revoked.' })),
  ...paging,
});
export const AuditQuery = object({
  agent: Type.Optional(Text),
  resource: Type.Optional(Type.String({ description: 'A glob: * any run of characters, ? one.' })),
  action: Type.Optional(Text),
  event_type: Type.Optional(Text),
  result: Type.Optional(Text),
  since: Type.Optional(Type.String({ description: 'ISO 8601, inclusive.' })),
  until: Type.Optional(Type.String({ description: 'ISO 8601, inclusive.' })),
  order: Type.Optional(Type.String({ description: 'asc or desc; newest first where it is left out.' })),
  ...paging,
});

// Bodies.
export const StoreBody = object({
  path: Text,
  value: Text,
  type: Type.Optional(Text),
  description: Type.Optional(Text),
});
export const PolicyBody = object({
  name: Text,
  principal: Text,
  resources: Type.Array(Text),
  actions: Type.Array(Text),
  max_ttl: Type.Optional(Type.Number({ description: 'Seconds; 300 where it is left out.' })),
});
export const ReplacePolicyBody = object({
  name: Type.Optional(Text),
  principal: Text,
  resources: Type.Array(Text),
  actions: Type.Array(Text),
  max_ttl: Type.Optional(Type.Number()),
});
export const SimulateBody = object({ agent: Text, resource: Text, action: Text });
export const AgentBody = object({
  name: Text,
  description: Type.Optional(Text),
  public_key: Type.Optional(Type.String({ description: 'Base64 of the 32 raw bytes; left out, a pair is made.' })),
});
export const ChallengeBody = object({ agent_name: Text });
export const VerifyBody = object({
  challenge_id: Text,
  agent_name: Text,
  signature: Type.String({ description: 'Base64 of the Ed25519 signature over the decoded nonce.' }),
});
export const RevokeLeasesBody = object({ agent: Type.Optional(Text), path: Type.Optional(Text) });
export const EmptyBody = object({});

// Answers.
export const Retrieved = object({ path: Text, value: Text, lease_id: Text, expires_at: Timestamp });
export const StoredCredential = object({ path: Text, type: Text, created_at: Timestamp });
const listed = {
  path: Text,
  type: Text,
  description: Text,
  created_at: Timestamp,
  updated_at: Timestamp,
  access_count: Type.Integer(),
};
export const ListedCredential = object(listed);
export const CredentialMetadata = object({
  ...listed,
  versions: Type.Array(object({ version: Type.Integer(), created_at: Timestamp })),
});
export const Policy = object({
  name: Text,
  principal: Text,
  resources: Type.Array(Text),
  actions: Type.Array(Text),
  max_ttl: Type.Integer(),
  created_at: Timestamp,
});
export const Simulation = object({
  allowed: Type.Boolean(),
  policy_name: nullable(Text),
  lease_ttl: nullable(Type.Integer()),
  reason: Text,
});
export const RegisteredAgent = object({ name: Text, public_key: Text, registered_at: Timestamp });
export const Agent = object({ name: Text, description: Text, public_key: Text, registered_at: Timestamp });
export const Challenge = object({ challenge_id: Text, nonce: Text, expires_at: Timestamp });
export const Session = object({ session_id: Text, agent_name: Text, expires_at: Timestamp });
export const Lease = object({
  lease_id: Text,
  agent_name: Text,
  path: Text,
  version: Type.Integer(),
  policy_name: Text,
  issued_at: Timestamp,
  expires_at: Timestamp,
  revoked_at: nullable(Timestamp),
  status: Text,
});
export const Revoked = object({ revoked: Type.Integer() });
export const AuditEntry = object({
  seq: Type.Integer(),
  id: Text,
  timestamp: Timestamp,
  event_type: Text,
  agent_name: Text,
  resource: Text,
  action: Text,
  result: Text,
  policy_name: nullable(Text),
  lease_id: nullable(Text),
  reason: nullable(Text),
  request_id: nullable(Text),
  remote_addr: nullable(Text),
  hmac: Text,
});
export const Verification = Type.Union([
  object({
    valid: Type.Literal(true),
    entries: Type.Integer(),
    first_entry: nullable(Timestamp),
    last_entry: nullable(Timestamp),
  }),
  object({
    valid: Type.Literal(false),
    break_at_entry: Type.Integer(),
    break_at_timestamp: nullable(Timestamp),
    message: Text,
  }),
]);
export const VerificationProgress = object({
  running: Type.Boolean(),
  entries_checked: nullable(Type.Integer()),
  entries_total: nullable(Type.Integer()),
  started_at: nullable(Timestamp),
});
export const Health = object({ status: Text });
export const Meta = object({ total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer() });
export const ErrorBody = object({ error: object({ code: Text, message: Text }) });
