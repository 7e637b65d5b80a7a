/** Reads and validates flag values. */

import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';
import type { Invocation } from './command.ts';
import { parseDuration } from './plural.ts';

/** Null without the flag. @throws what `parse` throws */
export function readFlag<T>(
  invocation: Pick<Invocation, 'flag'>,
  name: string,
  parse: (text: string, field: string) => T,
): T | null {
  const text = invocation.flag(name);
  return text === null ? null : parse(text, `--${name}`);
}

/** One of `choices`, or null without the flag. @throws UsageError */
export function readChoice<T extends string>(
  invocation: Pick<Invocation, 'flag'>,
  name: string,
  choices: readonly T[],
): T | null {
  return readFlag(invocation, name, (text, field) => {
    const chosen = choices.find((choice) => choice === text);
    if (chosen !== undefined) return chosen;
    const near = nearest(text.toLowerCase(), choices);
    const hint = near === null ? '' : `; did you mean ${near}?`;
    throw new UsageError(`${field}: must be one of ${choices.join(', ')}${hint}`);
  });
}

/** A positive integer, or null without the flag. @throws UsageError */
export function readWholeNumber(invocation: Pick<Invocation, 'flag'>, name: string): number | null {
  return readFlag(invocation, name, (text, field) => {
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`${field} must be a positive whole number`);
    return Number(text);
  });
}

/** At least one second, in seconds, or null without the flag. @throws UsageError */
export function readDuration(invocation: Pick<Invocation, 'flag'>, name: string): number | null {
  return readFlag(invocation, name, (text, field) => {
    const seconds = parseDuration(text);
    if (seconds !== null && seconds >= 1) return seconds;
    throw new UsageError(`${field}: must be a number of seconds or a duration such as 90s, 15m or 2h`);
  });
}
