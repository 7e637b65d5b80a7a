/**
 * ISO 8601 timestamps of filters, with `Z`, an offset, or neither for UTC. A date without a time means midnight.
 * SOURCE: docs/decisions.md, "The audit log".
 */
import { invalidRequest } from '../engine/errors.ts';

export const TIMESTAMP =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?:T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/;
const MINUTE_MS = 60_000;

/**
 * Milliseconds since 1970. A finer fraction is rounded: `up` for the beginning of a range, `down` for its end.
 * @throws INVALID_REQUEST naming `field` and the rule.
 */
export function parseTimestamp(text: string, field: string, rounding: 'up' | 'down'): number {
  const error = invalidRequest(
    field,
    'must be ISO 8601, such as 2026-01-31, 2026-01-31T09:30:00Z or 2026-01-31T09:30:00.250+02:00',
  );
  const match = TIMESTAMP.exec(text);
  if (match === null) throw error;
  const [, year, month, day, hour = '00', minute = '00', second = '00'] = match;
  const wholeSeconds = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const wall = Date.parse(wholeSeconds);
  // `Date.parse` turns February 30 into a day of March.
  if (Number.isNaN(wall) || new Date(wall).toISOString() !== wholeSeconds) throw error;
  const fractionMs = Number((match[7] ?? '0').padEnd(9, '0')) / 1_000_000;
  const milliseconds = rounding === 'up' ? Math.ceil(fractionMs) : Math.floor(fractionMs);
  const timestamp = wall + milliseconds - offsetMinutes(match[8]) * MINUTE_MS;
  if (!/^\d{4}-/.test(new Date(timestamp).toISOString())) throw error;
  return timestamp;
}

function offsetMinutes(zone: string | undefined): number {
  if (zone === undefined || zone === 'Z') return 0;
  const digits = zone.slice(1).replace(':', '');
  const [hours, minutes] = [Number(digits.slice(0, 2)), Number(digits.slice(2))];
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}
