/** What stands behind flags, held to its rule before anything is asked. */

import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';
import type { Invocation } from './command.ts';
import { parseDuration } from './plural.ts';

/** By a grammar of the service; null where it is not given. @throws Fault INVALID_REQUEST naming the flag and the rule */
export function readFlag<T>(
  invocation: Pick<Invocation, 'flag'>,
  name: string,
  parse: (text: string, field: string) => T,
): T | null {
  const text = invocation.flag(name);
  return text === null ? null : parse(text, `--${name}`);
}

/** One of a few words; null where it is not given. @throws UsageError */
export function readChoice<T extends string>(
  invocation: Pick<Invocation, 'flag'>,
  name: string,
  choices: readonly T[],
): T | null {
  return readFlag(invocation, name, (text, field) => {
    const chosen = choices.find((choice) => choice === text);
    if (chosen !== undefined) return chosen;
    const meant = nearest(text.toLowerCase(), choices);
    const hint = meant === null ? '' : `; did you mean ${meant}?`;
    throw new UsageError(`${field}: must be one of ${choices.join(', ')}${hint}`);
  });
}

/** From 1; null where it is not given. @throws UsageError */
export function readWholeNumber(invocation: Pick<Invocation, 'flag'>, name: string): number | null {
  return readFlag(invocation, name, (text, field) => {
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`${field} must be a whole number from 1`);
    return Number(text);
  });
}

/** In seconds, from 1; null where it is not given. @throws UsageError */
export function readDuration(invocation: Pick<Invocation, 'flag'>, name: string): number | null {
  return readFlag(invocation, name, (text, field) => {
    const seconds = parseDuration(text);
    if (seconds !== null && seconds >= 1) return seconds;
    throw new UsageError(`${field}: must be seconds, or a duration such as 90s, 15m or 2h`);
  });
}
