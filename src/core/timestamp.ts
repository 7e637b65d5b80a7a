/** ISO 8601 as a filter may give it. SOURCE: decisions, "Audit": with `Z` or an offset; without either, UTC; a bare date is its midnight. */
import { invalidRequest } from './errors.ts';

export const INSTANT =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?:T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/;
const MINUTE_MS = 60_000;

/**
 * Milliseconds since 1970. A fraction finer than that is rounded: `up` for the beginning of a range, `down` for its end.
 * @throws INVALID_REQUEST naming `field` and the rule.
 */
export function parseInstant(text: string, field: string, rounding: 'up' | 'down'): number {
  const fault = invalidRequest(
    field,
    'must be ISO 8601, such as 2026-01-31, 2026-01-31T09:30:00Z or 2026-01-31T09:30:00.250+02:00',
  );
  const match = INSTANT.exec(text);
  if (match === null) throw fault;
  const [, year, month, day, hour = '00', minute = '00', second = '00'] = match;
  const wholeSeconds = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const wall = Date.parse(wholeSeconds);
  // A day that its month does not have would have moved to the next one.
  if (Number.isNaN(wall) || new Date(wall).toISOString() !== wholeSeconds) throw fault;
  const fractionMs = Number((match[7] ?? '0').padEnd(9, '0')) / 1_000_000;
  const milliseconds = rounding === 'up' ? Math.ceil(fractionMs) : Math.floor(fractionMs);
  const instant = wall + milliseconds - offsetMinutes(match[8]) * MINUTE_MS;
  if (!/^\d{4}-/.test(new Date(instant).toISOString())) throw fault;
  return instant;
}

function offsetMinutes(zone: string | undefined): number {
  if (zone === undefined || zone === 'Z') return 0;
  const digits = zone.slice(1).replace(':', '');
  const [hours, minutes] = [Number(digits.slice(0, 2)), Number(digits.slice(2))];
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}
