/** The schemas of requests: queries and bodies. SOURCE: docs/api.md. */

import { Type } from 'typebox';
import type { InputOf } from '../engine/field.ts';
import { APPROVAL_STATUSES, MAX_NONCE_LENGTH } from '../vault/approvals/approval.ts';
import { NewOperator } from '../vault/operators/operator.ts';
import { MAX_URL_LENGTH } from '../vault/use/upstream-url.ts';
import * as fields from './fields.ts';
import { draftSchema } from './resource-schemas.ts';

const { PositiveInteger, StrictObject, StringEnum, paging, Text, LeaseStatus } = fields;

export const PageQuery = StrictObject(paging);
export const ListCredentialsQuery = StrictObject({ type: Type.Optional(fields.CredentialType), ...paging });
export const RetrieveQuery = StrictObject({
  version: Type.Optional(Type.Integer({ ...PositiveInteger, description: 'The version; the newest by default.' })),
  ttl: Type.Optional(Type.Integer({ ...fields.Ttl, description: 'A shorter lease than the policy allows.' })),
  view: Type.Optional(
    StringEnum(['metadata'], { description: 'No value and no lease; needs `list`. Not with `version` or `ttl`.' }),
  ),
});
export const LeasesQuery = StrictObject({
  agent: Type.Optional(fields.ActorName),
  path: Type.Optional(fields.Path),
  status: Type.Optional(LeaseStatus),
  ...paging,
});
export const StoreRequest = StrictObject({
  path: fields.Path,
  value: fields.Value,
  type: Type.Optional(fields.CredentialType),
  description: Type.Optional(fields.Description),
});
export const ApprovalsQuery = StrictObject({
  status: Type.Optional(StringEnum(APPROVAL_STATUSES)),
  agent: Type.Optional(fields.ActorName),
  ...paging,
});
const nonce = Type.String({
  minLength: 1,
  maxLength: MAX_NONCE_LENGTH,
  description: 'That of the approval that was read.',
});
export const ApproveRequest = StrictObject({ nonce });
export const DenyRequest = StrictObject({
  nonce,
  reason: Type.Optional(Type.String({ ...fields.Purpose, description: 'For the agent, and for the audit log.' })),
});
export const UseRequest = StrictObject({
  path: fields.Path,
  method: fields.HttpMethod,
  url: Type.String({
    maxLength: MAX_URL_LENGTH,
    description:
      'An absolute URL that a target of the credential matches; or only its path, for the first such target.',
  }),
  headers: Type.Optional(fields.RequestHeaders),
  body: Type.Optional(Type.String({ maxLength: 2 * 1024 * 1024 })),
  body_encoding: Type.Optional(StringEnum(['utf8', 'base64'], { description: '`utf8` by default.' })),
  ttl: Type.Optional(Type.Integer({ ...fields.Ttl, description: 'A shorter lease than the policy allows.' })),
  purpose: Type.Optional(fields.Purpose),
});
export const UseLeaseRequest = StrictObject({
  path: fields.BaseUrlPath,
  ttl: Type.Optional(Type.Integer({ ...fields.Ttl, description: 'A shorter lease than the policy allows.' })),
  purpose: Type.Optional(fields.Purpose),
});
export const SimulatedRequest = StrictObject(
  { method: fields.HttpMethod, url: Type.String({ maxLength: MAX_URL_LENGTH, description: 'An absolute URL.' }) },
  { description: 'Only with the action `use`: decides by the targets of the credential too.' },
);
export const SimulateRequest = StrictObject({
  agent: fields.PrincipalName,
  resource: fields.Path,
  action: Text,
  request: Type.Optional(SimulatedRequest),
});
const operator = { roles: fields.Roles, description: Type.Optional(fields.Description) };
export const OperatorReplacement = StrictObject({
  ...operator,
  identity: Type.Optional(
    Type.Unsafe<InputOf<typeof NewOperator.fields>['identity'] | null>({
      ...draftSchema(NewOperator).properties['identity'],
      type: ['object', 'null'],
      description: 'Left out: it stays. Null: it is removed.',
    }),
  ),
});
export const ChallengeRequest = StrictObject({ agent_name: fields.PrincipalName });
export const VerifyRequest = StrictObject({
  challenge_id: fields.Id,
  agent_name: fields.PrincipalName,
  signature: fields.Signature,
});
export const RevokeRequest = StrictObject(
  { agent: Type.Optional(fields.ActorName), path: Type.Optional(fields.Path) },
  { minProperties: 1 },
);
export const ExposureQuery = StrictObject({ agent: fields.ActorName, ...paging });
export const PanicRequest = StrictObject({
  agent: Type.Optional({ ...fields.AgentName, description: 'Only what this agent holds; everything by default.' }),
});
export const RotateKeyRequest = StrictObject({
  key: Type.Optional(StringEnum(['data', 'root', 'audit'], { description: '`data` by default.' })),
});
export const UnlockRequest = StrictObject({
  secret: Type.String({ minLength: 1, maxLength: 256, description: 'Base64 of the secret of a slot, or a share.' }),
});
export const Nothing = StrictObject({});
