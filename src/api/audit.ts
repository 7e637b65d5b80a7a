/** The schemas of replies about the audit log. SOURCE: docs/api.md, "The audit log". */
import { Type } from 'typebox';
import type { AnyField } from '../engine/field.ts';
import { ENTRY_FIELDS, ENTRY_ROWS, type AuditEntry as StoredEntry, USE_FIELDS } from '../vault/audit/audit-entry.ts';
import * as fields from './fields.ts';

const { StrictObject, NonNegativeInteger, NullableText, NullableTimestamp, NullableCount, Text } = fields;

/** Only the export contains the state of a row. */
const LISTED_FIELDS = ENTRY_FIELDS.filter((name) => name !== 'subject' && name !== 'state');
/** WHY no enums: an altered entry can still be listed, and `verify` reports the alteration. */
export const AuditEntry = Type.Unsafe<Pick<StoredEntry, (typeof LISTED_FIELDS)[number]>>(
  StrictObject(Object.fromEntries(LISTED_FIELDS.map((name) => [name, schemaOf(name)]))),
);

/** The fields of a use are only in entries about one. */
function schemaOf(name: (typeof ENTRY_FIELDS)[number]) {
  const { form, nulls, description }: Pick<AnyField, 'form' | 'nulls' | 'description'> = ENTRY_ROWS.fields[name];
  const plain = form.kind === 'integer' ? Type.Integer() : Text;
  const whole = nulls === 'everywhere' ? (form.kind === 'integer' ? NullableCount : NullableText) : plain;
  const schema = { ...whole, ...(description === undefined ? {} : { description }) };
  return USE_FIELDS.some((field) => field === name) ? Type.Optional(schema) : schema;
}

export const StateProblem = StrictObject({ subject: Text, problem: Text });
export const StateCheck = StrictObject({
  checked: NonNegativeInteger,
  problem_count: NonNegativeInteger,
  problems: Type.Array(StateProblem, { description: 'The first 100.' }),
});
export const IntactChain = StrictObject({
  valid: Type.Literal(true),
  entries: NonNegativeInteger,
  first_entry: NullableTimestamp,
  last_entry: NullableTimestamp,
  state: Type.Optional(StateCheck),
});
export const BrokenChain = StrictObject({
  valid: Type.Literal(false),
  break_at_entry: Type.Integer(),
  break_at_timestamp: NullableText,
  message: Text,
  state: Type.Optional(StateCheck),
});
export const Verification = Type.Union([IntactChain, BrokenChain]);
export const VerificationProgress = StrictObject({
  running: Type.Boolean(),
  entries_checked: NullableCount,
  entries_total: NullableCount,
  // Present only while the state is checked.
  rows_checked: Type.Optional(NullableCount),
  started_at: NullableTimestamp,
});
