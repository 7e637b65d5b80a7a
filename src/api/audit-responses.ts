/** The schemas of responses about the audit log. SOURCE: docs/api.md, "The audit log". */

import { RESULTS } from '../core/audit.ts';
import * as fields from './fields.ts';
import { Type } from './schema.ts';

const { object, whole, NullableText, NullableTimestamp, Text, Timestamp } = fields;

/**
 * An entry as it is stored, without the state of a row, which only the export has. WHY no enums: an altered entry can
 * still be listed, and `verify` reports the alteration.
 */
export const AuditEntry = object({
  seq: Type.Integer({ description: '1, 2, 3 …' }),
  id: Text,
  timestamp: Timestamp,
  event_type: Type.String({ description: 'Such as `credential.retrieve`.' }),
  agent_name: Type.String({ description: 'An agent, `admin` or `service`.' }),
  resource: Type.String({ description: 'A credential path, `policy:<name>`, `agent:<name>`, `lease:<id>` or `*`.' }),
  action: Text,
  result: Type.String({ description: `${RESULTS.map((result) => `\`${result}\``).join(', ')}.` }),
  policy_name: NullableText,
  lease_id: NullableText,
  reason: NullableText,
  request_id: NullableText,
  remote_addr: NullableText,
  hmac: Text,
  // Only in entries about the use of a credential.
  method: Type.Optional(NullableText),
  host: Type.Optional(NullableText),
  target_path: Type.Optional(NullableText),
  status: Type.Optional(fields.NullableCount),
  bytes_in: Type.Optional(fields.NullableCount),
  bytes_out: Type.Optional(fields.NullableCount),
  redactions: Type.Optional(fields.NullableCount),
  ended: Type.Optional(NullableText),
});
export const StateProblem = object({ subject: Text, problem: Text });
/** Only if it was asked for. */
export const StateCheck = object({
  checked: whole(0),
  problem_count: whole(0),
  problems: Type.Array(StateProblem, { description: 'The first 100.' }),
});
export const Checkpoint = object({
  origin: Type.String({ description: 'The name of the log.' }),
  size: whole(0),
  root: Type.String({
    description: 'Base64 of the root of the Merkle tree over the MACs of the first `size` entries.',
  }),
  note: Type.String({ description: 'The signed note, in the form of C2SP `tlog-checkpoint`.' }),
  verifier_key: Type.String({ description: 'The public key of the note: `name+key id+base64`.' }),
  signed_at: Timestamp,
});
export const EntryProof = object({
  seq: whole(1),
  hmac: Text,
  size: Type.Integer({ description: 'The size of the tree of the checkpoint.' }),
  proof: Type.Array(Text, { description: 'Base64 of the hashes, from the sibling of the leaf up.' }),
  receipt: Type.String({ description: 'Proof and checkpoint as one text, in the form of C2SP `tlog-proof`.' }),
  verifier_key: Text,
});
export const ConsistencyProof = object({
  from: whole(0),
  to: whole(0),
  from_root: Text,
  to_root: Text,
  proof: Type.Array(Text, { description: 'Base64 of the hashes, as in RFC 6962, section 2.1.2.' }),
});
export const IntactChain = object({
  valid: Type.Literal(true),
  entries: whole(0),
  first_entry: NullableTimestamp,
  last_entry: NullableTimestamp,
  state: Type.Optional(StateCheck),
});
export const BrokenChain = object({
  valid: Type.Literal(false),
  break_at_entry: Type.Integer(),
  break_at_timestamp: NullableText,
  message: Text,
  state: Type.Optional(StateCheck),
});
export const Verification = Type.Union([IntactChain, BrokenChain]);
export const VerificationProgress = object({
  running: Type.Boolean(),
  entries_checked: fields.NullableCount,
  entries_total: fields.NullableCount,
  // Only while the state is checked.
  rows_checked: Type.Optional(fields.NullableCount),
  started_at: NullableTimestamp,
});
