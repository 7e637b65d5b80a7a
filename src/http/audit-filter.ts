/** Parses the filters of the audit log, which several lists share. */
import { MAX_FILTER_LENGTH } from '../api/audit.ts';
import { invalidRequest } from '../core/errors.ts';
import { parseActorName } from '../core/names.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import type { EntryBounds, EntryQuery } from '../vault/audit.ts';
import { toTimestamp } from './serialize.ts';

interface FilterFields {
  readonly agent?: string | undefined;
  readonly resource?: string | undefined;
  readonly action?: string | undefined;
  readonly event_type?: string | undefined;
  readonly result?: string | undefined;
}

interface RangeFields {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly after?: number | undefined;
  readonly before?: number | undefined;
}

/** @throws INVALID_REQUEST */
export function toAuditFilter(query: FilterFields): Omit<EntryQuery, keyof EntryBounds | 'order'> {
  return {
    agentName: query.agent === undefined ? null : parseActorName(query.agent, 'agent'),
    resource: parseFilter(query.resource, 'resource'),
    action: parseFilter(query.action, 'action'),
    eventType: parseFilter(query.event_type, 'event_type'),
    result: parseFilter(query.result, 'result'),
  };
}

/** @throws INVALID_REQUEST */
export function toEntryBounds({ since, until, after = 0, before }: RangeFields): EntryBounds {
  return {
    since: since === undefined ? null : toTimestamp(parseTimestamp(since, 'since', 'up')),
    until: until === undefined ? null : toTimestamp(parseTimestamp(until, 'until', 'down')),
    after,
    before: before ?? null,
  };
}

function parseFilter(text: string | undefined, field: string): string | null {
  if (text === undefined) return null;
  if (text.length < 1 || text.length > MAX_FILTER_LENGTH) {
    throw invalidRequest(field, `must be 1 to ${MAX_FILTER_LENGTH} characters`);
  }
  return text;
}
