/** The schemas of responses. SOURCE: docs/api.md. */

import { Type } from 'typebox';
import { API_ERROR_CODES } from '../engine/errors.ts';
import { ListedApproval } from '../vault/approvals/approval.ts';
import * as fields from './fields.ts';
import { replySchema } from './resource-schemas.ts';

const {
  StrictObject,
  StringEnum,
  Nullable,
  NonNegativeInteger,
  PositiveInteger,
  NullableText,
  NullableCount,
  Text,
  Timestamp,
} = fields;

export const ResponseHeaders = Type.Record(Type.String(), Type.Union([Text, Type.Array(Text)]), {
  additionalProperties: false,
  description: 'By lower-case name; a repeated one has an array.',
});
export const UseResponse = StrictObject({
  lease_id: fields.Id,
  status: Type.Integer({ ...PositiveInteger, minimum: 100 }),
  headers: ResponseHeaders,
  body: Type.String({ description: 'At most 2 MiB.' }),
  body_encoding: StringEnum(['utf8', 'base64'], { description: '`utf8` where the body is text.' }),
  redactions: NonNegativeInteger,
  truncated: Type.Boolean(),
});
export const SdkVariables = Type.Record(Type.String(), Text, {
  additionalProperties: false,
  description: 'Variables of the service, for its SDKs.',
});
export const UseLease = StrictObject({
  lease_id: fields.Id,
  token: Type.String({ description: 'Good for uses of this credential only.' }),
  base_url: Text,
  expires_at: Timestamp,
  env: SdkVariables,
});
export const ServiceStatus = StringEnum(['starting', 'ok', 'locked', 'rolled_back', 'stopping', 'failing']);
export const UnlockProgress = StrictObject({
  status: ServiceStatus,
  shares_given: NullableCount,
  shares_needed: NullableCount,
});
export const TreeEntry = StrictObject({
  name: Type.String({ description: 'The last segment of the path.' }),
  kind: StringEnum(['directory', 'credential']),
  path: fields.Path,
  credentials: Type.Optional(
    Nullable<number>(
      Type.Integer({ ...PositiveInteger, description: 'Below a directory; null where there are too many to count.' }),
    ),
  ),
  type: Type.Optional(fields.CredentialType),
  updated_at: Type.Optional(Timestamp),
});
export const Tree = StrictObject({
  prefix: Type.String({ description: 'Empty for the first level.' }),
  entries: Type.Array(TreeEntry),
  next: Nullable<string>(Type.String({ description: '`after` of the next page; null at the end.' })),
});

export const Health = StrictObject({ status: ServiceStatus });
export const Rollback = StrictObject({ loss: NullableText });
export const Meta = StrictObject({ total: NonNegativeInteger, limit: PositiveInteger, offset: NonNegativeInteger });
export const ErrorCode = StringEnum(API_ERROR_CODES);
export const ErrorInfo = StrictObject({
  code: ErrorCode,
  message: Text,
  approval_id: Type.Optional(Type.String({ ...fields.Id, description: 'Of an error about an approval.' })),
  current: Type.Optional(
    Type.Unsafe<object | null>({
      type: ['object', 'null'],
      description:
        'With PRECONDITION_FAILED, for operators and the administrator: the resource as `GET` returns it, with its `ETag` in the header; null if it does not exist.',
    }),
  ),
});
export const ErrorBody = StrictObject({ error: ErrorInfo });
export const ShownHeader = StrictObject({ name: Text, value: Text });
export const HeldCall = StrictObject({
  method: fields.HttpMethod,
  url: Text,
  headers: Type.Array(ShownHeader, { description: 'Those that are sent and bound, by name.' }),
  opens_websocket: Type.Boolean({ description: 'What is sent over it afterwards is not shown.' }),
  content_type: NullableText,
  body: Type.String({ description: 'At most its first 16 KiB.' }),
  body_encoding: StringEnum(['utf8', 'base64']),
  body_bytes: NonNegativeInteger,
  body_sha256: Text,
  truncated: Type.Boolean(),
});
export const Approval = StrictObject({
  ...replySchema(ListedApproval).properties,
  request: Type.Union([HeldCall, Type.Null()], {
    description: 'Null for a retrieval, or if it can no longer be read.',
  }),
});
