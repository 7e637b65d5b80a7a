/** Numbers and times as people type them. */
import { parseInstant } from '../core/instant.ts';

const MILLISECONDS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** `90m` and such, back from now, as the service takes times; ISO 8601 as it is. @throws Fault for anything else */
export function toInstant(text: string, field: string, now: number = Date.now()): string {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) {
    parseInstant(text, field, 'up');
    return text;
  }
  return new Date(now - Number(count) * MILLISECONDS[unit as keyof typeof MILLISECONDS]).toISOString();
}

/** `1 lease`, `2 leases`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
