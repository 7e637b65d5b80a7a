/** One declaration for each flag: parsing, environment variable, default, help and documentation follow from it. */

import { parseTimestamp } from '../core/filter-timestamp.ts';
import { nearest } from '../core/operator-text.ts';
import { UsageError } from '../platform/errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Flag<T = unknown> {
  /** A single letter, as in `-o`. */
  readonly short?: string;
  /** Placeholder for the value in help, in brackets if the value is optional; null for a switch. */
  readonly value: string | null;
  readonly help: string;
  readonly isRepeatable?: true;
  readonly variable?: string;
  readonly byDefault?: string;
  /**
   * Converts the given texts; `given` is empty without the flag. An omitted value is an empty text. @throws UsageError,
   * ApiError that name `field`
   */
  read(given: readonly string[], field: string): T;
}

/** Flags by their names without the hyphens. */
export type Flags = Readonly<Record<string, Flag>>;

export type FlagValues<F extends Flags> = { readonly [Name in keyof F]: F[Name] extends Flag<infer T> ? T : never };

/** The fields that have a value, for a request. A flag that is not given is null. */
export function withoutNulls<T extends object>(fields: T): { readonly [Name in keyof T]?: NonNullable<T[Name]> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries) as { readonly [Name in keyof T]?: NonNullable<T[Name]> };
}

type Details = Pick<Flag, 'short' | 'variable'>;

export function toggle(help: string, details: Details = {}): Flag<boolean> {
  return { ...details, value: null, help, read: (given) => given.length > 0 };
}

/** A flag with a value that `parse` converts; null without the flag. If it is repeated, the last one counts. */
export function parsed<T>(
  value: string,
  help: string,
  parse: (text: string, field: string) => T,
  details: Details = {},
): Flag<T | null> {
  const read = (given: readonly string[], field: string): T | null => {
    const text = given.at(-1);
    return text === undefined ? null : parse(text, field);
  };
  return { ...details, value, help, read };
}

export function withDefault<T>(
  value: string,
  help: string,
  byDefault: string,
  parse: (text: string, field: string) => T,
): Flag<T> {
  return { value, help, byDefault, read: (given, field) => parse(given.at(-1) ?? byDefault, field) };
}

export function text(value: string, help: string, details: Details = {}): Flag<string | null> {
  return parsed(value, help, (given) => given, details);
}

export function list(value: string, help: string, details: Details = {}): Flag<readonly string[]> {
  return { ...details, value, help, isRepeatable: true, read: (given) => given };
}

/** Parses one of the words. @throws UsageError */
export function chooseFrom<T extends string>(choices: readonly T[]): (given: string, field: string) => T {
  return (given, field) => {
    const chosen = choices.find((each) => each === given);
    if (chosen !== undefined) return chosen;
    const near = nearest(given.toLowerCase(), choices);
    const hint = near === null ? '' : `; did you mean ${near}?`;
    throw new UsageError(`${field}: must be one of ${choices.join(', ')}${hint}`);
  };
}

export function choice<T extends string>(value: string, choices: readonly T[], help: string): Flag<T | null> {
  return parsed(value, help, chooseFrom(choices));
}

export function wholeNumber(help: string): Flag<number | null> {
  return parsed('N', help, (given, field) => {
    if (!/^[1-9]\d{0,8}$/.test(given)) throw new UsageError(`${field} must be a positive whole number`);
    return Number(given);
  });
}

/** An ISO 8601 time, or an age such as `90m`, as a timestamp. */
export function instant(help: string): Flag<string | null> {
  return parsed('TIME', help, toInstant);
}

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 } as const;

/** Parses `90`, `90s`, `15m` or `1h30m` into seconds; null for anything else. */
export function parseDuration(given: string): number | null {
  if (/^\d{1,9}$/.test(given)) return Number(given);
  if (!/^(?:\d{1,9}[smhdw])+$/.test(given)) return null;
  const parts = [...given.matchAll(/(\d+)([smhdw])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * SECONDS[unit as keyof typeof SECONDS], 0);
}

/** The number of seconds in the largest unit without a remainder: 300 is `5m`. */
export function toDuration(seconds: number): string {
  const units = Object.entries(SECONDS).toReversed();
  const [unit, size] = units.find(([, each]) => seconds % each === 0) ?? ['s', 1];
  return `${seconds / size}${unit}`;
}

/** Converts an age such as `90m` to a timestamp; returns ISO 8601 unchanged. @throws ApiError for anything else */
function toInstant(given: string, field: string): string {
  const seconds = /[smhdw]$/.test(given) ? parseDuration(given) : null;
  const time = new Date(Date.now() - (seconds ?? 0) * 1000);
  if (seconds !== null && !Number.isNaN(time.getTime())) return time.toISOString();
  parseTimestamp(given, field, 'up');
  return given;
}

/** Parses a duration of at least one second. @throws UsageError */
export function toSeconds(given: string, field: string): number {
  const seconds = parseDuration(given);
  if (seconds !== null && seconds >= 1) return seconds;
  throw new UsageError(`${field}: must be a number of seconds or a duration such as 90s, 15m or 2h`);
}
