/** The schemas of queries of the audit log. SOURCE: docs/api.md, "The audit log". */
import type { TSchemaOptions } from 'typebox';
import { TIMESTAMP } from '../core/timestamp.ts';
import * as fields from './fields.ts';
import { MAX_BUCKETS } from './list-limits.ts';
import { Type } from './schema.ts';

const { object, paging, whole, word } = fields;

/** Longer than any recorded resource, action or event. */
export const MAX_FILTER_LENGTH = 640;
/** A year in seconds. */
const MAX_STEP = 366 * 24 * 3600;

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
  after: Type.Optional(whole(0, { description: 'Only entries with a higher number than this.' })),
  before: Type.Optional(whole(1, { description: 'Only entries with a lower number than this.' })),
};

export const AuditQuery = object({
  ...filters,
  ...range,
  order: Type.Optional(word(['asc', 'desc'], { description: 'Newest first by default.' })),
  ...paging,
});
export const AuditFacetsQuery = object({ ...filters, ...range });
export const AuditCountsQuery = object({
  ...filters,
  since: Type.String(instant),
  until: Type.Optional(Type.String({ ...instant, description: 'ISO 8601, inclusive; now by default.' })),
  step: Type.Integer({
    minimum: 1,
    maximum: MAX_STEP,
    description: `Seconds; since, until and step must give at most ${MAX_BUCKETS} buckets.`,
  }),
});

export const VerifyQuery = object({
  state: Type.Optional(word(['true', 'false'], { description: 'Also check every row against the log.' })),
  values: Type.Optional(word(['true', 'false'], { description: 'Also open every sealed value; implies `state`.' })),
});

export const ConsistencyQuery = object({
  from: whole(0, { description: 'The size of the earlier tree.' }),
  to: Type.Optional(whole(0, { description: 'The size of the later tree; by default that of the newest checkpoint.' })),
});
