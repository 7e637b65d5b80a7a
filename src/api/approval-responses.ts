/** The schemas of responses about approvals. SOURCE: docs/approvals.md. */
import { APPROVAL_STATUSES } from '../core/approval.ts';
import { APPROVAL_EXTENTS, APPROVED_ACTIONS } from '../core/approval-rule.ts';
import * as fields from './fields.ts';
import { Type } from './schema.ts';

const { object, whole, word, NullableText, NullableTimestamp, Text, Timestamp } = fields;

export const Approver = object({ operator: fields.ActorName, at: Timestamp });
const listedApproval = {
  approval_id: fields.Id,
  nonce: Text,
  status: word(APPROVAL_STATUSES),
  agent_name: fields.ActorName,
  action: word(APPROVED_ACTIONS),
  path: fields.Path,
  policy_names: Type.Array(fields.PolicyName),
  covers: Type.String({ description: 'What an approval allows, as a sentence.' }),
  each: word(APPROVAL_EXTENTS),
  uses: fields.nullable<number>(whole(1, { description: 'How often; null for any number of times.' })),
  seconds: whole(1, { description: 'For how long after the approval.' }),
  for_session: Type.Boolean({ description: 'Whether only for the session that asked.' }),
  quorum: whole(1),
  approvals: Type.Array(Approver),
  method: NullableText,
  host: NullableText,
  target_path: NullableText,
  purpose: NullableText,
  requested_at: Timestamp,
  expires_at: Type.String({ ...Timestamp, description: 'When a request without an answer times out.' }),
  answered_at: NullableTimestamp,
  answered_by: fields.nullable<string>(fields.ActorName),
  reason: NullableText,
  uses_left: fields.nullable<number>(whole(0)),
  grant_ends_at: NullableTimestamp,
};
export const ListedApproval = object(listedApproval);
export const ShownHeader = object({ name: Text, value: Text });
export const HeldCall = object({
  method: fields.HttpMethod,
  url: Text,
  headers: Type.Array(ShownHeader, { description: 'Those that are sent and bound, by name.' }),
  opens_websocket: Type.Boolean({ description: 'What is sent over it afterwards is not shown.' }),
  content_type: NullableText,
  body: Type.String({ description: 'At most its first 16 KiB.' }),
  body_encoding: word(['utf8', 'base64']),
  body_bytes: whole(0),
  body_sha256: Text,
  truncated: Type.Boolean(),
});
export const Approval = object({
  ...listedApproval,
  request: Type.Union([HeldCall, Type.Null()], {
    description: 'Null for a retrieval, or if it is not readable any more.',
  }),
});
