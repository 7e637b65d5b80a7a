/** Durations, times and plurals as people write them. */
import { parseTimestamp } from '../core/timestamp.ts';

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 } as const;

/** Parses `90`, `90s`, `15m` or `1h30m` into seconds; null for anything else. */
export function parseDuration(text: string): number | null {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  if (!/^(?:\d{1,9}[smhdw])+$/.test(text)) return null;
  const parts = [...text.matchAll(/(\d+)([smhdw])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * SECONDS[unit as keyof typeof SECONDS], 0);
}

/** Converts an age such as `90m` to a timestamp; returns ISO 8601 unchanged. @throws ApiError for anything else */
export function toInstant(text: string, field: string, now: number = Date.now()): string {
  const seconds = /[smhdw]$/.test(text) ? parseDuration(text) : null;
  const instant = new Date(now - (seconds ?? 0) * 1000);
  if (seconds !== null && !Number.isNaN(instant.getTime())) return instant.toISOString();
  parseTimestamp(text, field, 'up');
  return text;
}

/** `1 lease`, `2 leases`. */
export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
