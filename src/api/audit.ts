/** The schemas of queries of the audit log and of their responses. SOURCE: docs/api.md, "The audit log". */
import { type TSchemaOptions, Type } from 'typebox';
import { TIMESTAMP } from '../core/filter-timestamp.ts';
import type { AnyField } from '../engine/field.ts';
import { ENTRY_FIELDS, ENTRY_ROWS, type AuditEntry as StoredEntry, USE_FIELDS } from '../vault/audit/audit-entry.ts';
import * as fields from './fields.ts';

const {
  paging,
  StrictObject,
  StringEnum,
  NonNegativeInteger,
  PositiveInteger,
  NullableText,
  NullableTimestamp,
  NullableCount,
  Text,
} = fields;

export const MAX_FILTER_LENGTH = 640;

const filter = (options: TSchemaOptions = {}) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: MAX_FILTER_LENGTH, ...options }));
const instant = { pattern: TIMESTAMP.source, description: 'ISO 8601, inclusive; UTC unless it has an offset.' };

const filters = {
  agent: Type.Optional(fields.ActorName),
  resource: filter({ description: 'A glob: `*` matches any characters, `?` matches one.' }),
  action: filter(),
  event_type: filter(),
  result: filter(),
};
const range = {
  since: Type.Optional(Type.String(instant)),
  until: Type.Optional(Type.String(instant)),
  after: Type.Optional(
    Type.Integer({ ...NonNegativeInteger, description: 'Only entries with a higher number than this.' }),
  ),
  before: Type.Optional(
    Type.Integer({ ...PositiveInteger, description: 'Only entries with a lower number than this.' }),
  ),
};

export const AuditQuery = StrictObject({
  ...filters,
  ...range,
  order: Type.Optional(StringEnum(['asc', 'desc'], { description: 'Newest first by default.' })),
  ...paging,
});

export const VerifyQuery = StrictObject({
  state: Type.Optional(StringEnum(['true', 'false'], { description: 'Also check every row against the audit log.' })),
  values: Type.Optional(StringEnum(['true', 'false'], { description: 'Also decrypt every value; implies `state`.' })),
});

export const ConsistencyQuery = StrictObject({
  from: Type.Integer({ ...NonNegativeInteger, description: 'The size of the smaller tree.' }),
  to: Type.Optional(
    Type.Integer({
      ...NonNegativeInteger,
      description: 'The size of the larger tree; by default the size of the newest checkpoint.',
    }),
  ),
});

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
