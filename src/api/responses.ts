/** The schemas of responses. SOURCE: docs/api.md. */

import type { Static } from 'typebox';
import { API_ERROR_CODES } from '../core/errors.ts';
import * as fields from './fields.ts';
import { Type } from './schema.ts';

export * from './approval-responses.ts';
export * from './audit-responses.ts';
export { Action, LeaseStatus, PolicyApproval, SlotParameters, Target } from './fields.ts';
export * from './overview-responses.ts';

const { map, object, whole, word, LeaseStatus, NullableText, NullableTimestamp, Text, Timestamp } = fields;

export const RetrieveResponse = object({
  path: fields.Path,
  value: fields.Value,
  lease_id: fields.Id,
  expires_at: Timestamp,
});
export const StoredCredential = object({ path: fields.Path, type: fields.CredentialType, created_at: Timestamp });
const listed = {
  path: fields.Path,
  type: fields.CredentialType,
  description: fields.Description,
  created_at: Timestamp,
  updated_at: Timestamp,
  access_count: whole(0),
};
export const ListedCredential = object(listed);
export const CredentialVersion = object({ version: whole(1), created_at: Timestamp });
export const CredentialMetadata = object({ ...listed, versions: Type.Array(CredentialVersion) });
export const ServiceVariable = object({
  name: Text,
  holds: word(['base-url', 'key', 'fixed']),
  suffix: Type.Optional(Type.String({ description: 'The path that the SDK expects in its base URL.' })),
  value: Type.Optional(Type.String({ description: 'Of a fixed variable.' })),
  read_by: word(['sdk', 'example'], { description: '`example` if only the documentation of the service uses it.' }),
});
export const Policy = object({
  name: fields.PolicyName,
  principal: fields.Principal,
  resources: fields.Resources,
  actions: fields.Actions,
  max_ttl: fields.Ttl,
  // Only where it was given.
  limits: Type.Optional(fields.Limits),
  approval: Type.Optional(fields.PolicyApproval),
  created_at: Timestamp,
});
export const CredentialTargets = object({
  path: fields.Path,
  service: NullableText,
  targets: fields.Targets,
  placement: fields.Placement,
  updated_at: Timestamp,
});
export const ResponseHeaders = map(null, Type.Union([Text, Type.Array(Text)]), {
  description: 'By lower-case name; a repeated one has an array.',
});
export const CatalogueService = object({
  name: fields.Service,
  title: Text,
  unsupported: fields.nullable<string>(Type.String({ description: 'Why the service cannot be used; null if it can.' })),
  needs_host: Type.Boolean({ description: 'Whether `targets` must name a host of the user in place of `*`.' }),
  targets: Type.Array(fields.Target),
  placement: fields.Placement,
  variables: Type.Array(ServiceVariable, { description: 'What the SDKs of the service read from the environment.' }),
  key_prefixes: Type.Array(Text),
  denied: Type.Array(Text, {
    description: 'Endpoints that return other secrets, such as `POST,PUT /v1/keys/*`; `ANY` is every method.',
  }),
  notes: Type.Array(Text),
});
export const UseResponse = object({
  lease_id: fields.Id,
  status: whole(100),
  headers: ResponseHeaders,
  body: Type.String({ description: 'At most 2 MiB.' }),
  body_encoding: word(['utf8', 'base64'], { description: '`utf8` where the body is text.' }),
  redactions: whole(0),
  truncated: Type.Boolean(),
});
export const SdkVariables = map(null, Text, { description: 'Variables of the service, for its SDKs.' });
export const UseLease = object({
  lease_id: fields.Id,
  token: Type.String({ description: 'Good for uses of this credential only.' }),
  base_url: Text,
  expires_at: Timestamp,
  env: SdkVariables,
});
export const Simulation = object({
  allowed: Type.Boolean(),
  policy_name: NullableText,
  lease_ttl: fields.nullable<number>(fields.Ttl),
  reason: Text,
});
export const RegisteredAgent = object({
  name: fields.AgentName,
  public_key: fields.PublicKey,
  registered_at: Timestamp,
});
export const Agent = object({
  name: fields.AgentName,
  description: fields.Description,
  public_key: fields.PublicKey,
  registered_at: Timestamp,
});
export const Passkey = object({
  id: fields.PasskeyId,
  label: fields.PasskeyLabel,
  synced: Type.Boolean({ description: 'Whether the authenticator copies it to other devices.' }),
  added_at: Timestamp,
});
export const OperatorIdentity = object({ issuer: Text, subject: NullableText, email: NullableText });
export const Operator = object({
  name: fields.OperatorName,
  description: fields.Description,
  roles: Type.Array(fields.Role),
  public_key: fields.nullable<string>(fields.PublicKey),
  passkeys: Type.Array(Passkey),
  identity: fields.nullable<Static<typeof OperatorIdentity>>(OperatorIdentity),
  added_at: Timestamp,
});
export const RotatedAgent = object({
  name: fields.AgentName,
  public_key: fields.PublicKey,
  former_key_until: NullableTimestamp,
});
export const Challenge = object({
  challenge_id: fields.Id,
  nonce: Type.String({ contentEncoding: 'base64', description: 'Base64 of 32 bytes; sign the decoded bytes.' }),
  expires_at: Timestamp,
});
const session = {
  agent_name: fields.PrincipalName,
  expires_at: Timestamp,
  expires_in: fields.SecondsLeft,
  roles: Type.Optional(Type.Array(fields.Role, { description: 'Of an operator.' })),
  ends_at: Type.Optional(
    Type.String({ ...Timestamp, description: 'Of an operator: renewals extend the session up to this time.' }),
  ),
};
export const Session = object({
  session_id: Type.String({ description: 'The bearer token of the session.' }),
  ...session,
});
/** Of the caller. */
export const CurrentSession = object({
  session_id: Type.Optional(
    Type.String({ description: 'The bearer token of the session; left out for a browser’s, which has it in parts.' }),
  ),
  ...session,
});
export const Lease = object({
  lease_id: fields.Id,
  agent_name: fields.ActorName,
  path: fields.Path,
  version: whole(1),
  policy_name: Text,
  issued_at: Timestamp,
  expires_at: Timestamp,
  revoked_at: NullableTimestamp,
  status: LeaseStatus,
});
export const AgentExposure = object({
  agent_name: fields.ActorName,
  first_at: Timestamp,
  last_at: Timestamp,
  times: whole(1),
  live: Type.Boolean({ description: 'Whether it still has an active lease for it.' }),
});
export const VersionExposure = object({
  version: whole(1),
  deleted: Type.Boolean({ description: 'Whether it was of a credential that was deleted.' }),
  seen_by: Type.Array(AgentExposure),
  used_by: Type.Array(AgentExposure, { description: 'Those that used it, whether or not they have seen it.' }),
});
export const CredentialExposure = object({ path: fields.Path, versions: Type.Array(VersionExposure) });
export const ExposedVersion = object({
  path: fields.Path,
  version: whole(1),
  current: Type.Boolean({ description: 'Whether it is the newest version of an existing credential.' }),
});
export const Held = object({
  leases: whole(0),
  sessions: whole(0),
  streams: whole(0, { description: 'Running uses on this node.' }),
});
export const Panicked = object({
  leases: whole(0),
  sessions: whole(0),
  streams: whole(0, { description: 'Running uses that were cut.' }),
  rotate: Type.Array(ExposedVersion, { description: 'Versions that were seen.' }),
  used_only: Type.Array(ExposedVersion, { description: 'Versions that were used and never seen.' }),
});
export const RevokeResponse = object({ revoked: whole(0) });
export const ServiceStatus = word(['starting', 'ok', 'locked', 'rolled_back', 'stopping', 'failing']);
export const KeySlot = object({
  name: fields.SlotName,
  kind: fields.SlotKind,
  parameters: fields.SlotParameters,
  created_at: Timestamp,
});
export const KeySlotTest = object({ opens: Type.Boolean(), problem: NullableText });
export const RotatedKey = object({ key: word(['data', 'root', 'audit']) });
export const AttendedSlot = object({ name: fields.SlotName, kind: fields.SlotKind, parameters: fields.SlotParameters });
export const UnlockProgress = object({
  status: ServiceStatus,
  shares_given: fields.NullableCount,
  shares_needed: fields.NullableCount,
});
export const Health = object({ status: ServiceStatus });
export const Rollback = object({ loss: NullableText });
export const Meta = object({ total: whole(0), limit: whole(1), offset: whole(0) });
export const ErrorCode = word(API_ERROR_CODES);
export const ErrorInfo = object({
  code: ErrorCode,
  message: Text,
  approval_id: Type.Optional(Type.String({ ...fields.Id, description: 'Of an error about an approval.' })),
});
export const ErrorBody = object({ error: ErrorInfo });
