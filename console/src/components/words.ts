/** Counts, durations and times in words and figures. */

/** A count such as `1 lease` or `2,000 leases`; `… leases` while the number is unknown. */
export function countText(number: number | undefined, one: string, many = `${one}s`): string {
  return number === undefined ? `… ${many}` : `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

const UNITS = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
] as const;

/** A duration such as `5 minutes`, or `90 seconds` if no larger unit fits. */
export function durationText(seconds: number): string {
  const [size, unit] = UNITS.find(([each]) => seconds % each === 0) ?? [1, 'second'];
  return countText(seconds / size, unit);
}

export const ZONES = ['local', 'UTC'] as const;
export type Zone = (typeof ZONES)[number];

const padded = (number: number, digits = 2): string => String(number).padStart(digits, '0');

/** A time such as `2026-01-31 14:05:09.123`. */
export function formatTime(date: Date, zone: Zone, isPrecise: boolean): string {
  if (zone === 'UTC') {
    return date
      .toISOString()
      .replace('T', ' ')
      .slice(0, isPrecise ? 23 : 19);
  }
  const day = `${date.getFullYear()}-${padded(date.getMonth() + 1)}-${padded(date.getDate())}`;
  const clock = `${padded(date.getHours())}:${padded(date.getMinutes())}:${padded(date.getSeconds())}`;
  return `${day} ${clock}${isPrecise ? `.${padded(date.getMilliseconds(), 3)}` : ''}`;
}
