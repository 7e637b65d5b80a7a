/** Constructors of flags, the parsers of their values, and the flags that several commands share. */
import { nearest } from '../core/nearest.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import { UsageError } from '../platform/errors.ts';
import type { Command, Flag, Flags } from './command.ts';
import { FORMATS } from './output/cells.ts';

interface Details {
  readonly short?: string;
}

/** A flag without a value. */
export function toggle(help: string, details: Details = {}): Flag<boolean> {
  return { ...details, value: null, help, read: (given) => given.length > 0 };
}

/** A flag with a value that `parse` converts; null without the flag. */
export function parsed<T>(
  value: string,
  help: string,
  parse: (text: string, field: string) => T,
  details: Details = {},
): Flag<T | null> {
  return { ...details, value, help, read: ([text], field) => (text === undefined ? null : parse(text, field)) };
}

export function text(value: string, help: string): Flag<string | null> {
  return parsed(value, help, (given) => given);
}

/** A flag that can be given several times. */
export function list(value: string, help: string, details: Details = {}): Flag<readonly string[]> {
  return { ...details, value, help, isRepeatable: true, read: (given) => given };
}

export function choice<T extends string>(value: string, choices: readonly T[], help: string): Flag<T | null> {
  const parse = (given: string, field: string): T => {
    const chosen = choices.find((each) => each === given);
    if (chosen !== undefined) return chosen;
    const near = nearest(given.toLowerCase(), choices);
    const hint = near === null ? '' : `; did you mean ${near}?`;
    throw new UsageError(`${field}: must be one of ${choices.join(', ')}${hint}`);
  };
  return parsed(value, help, parse);
}

/** A positive integer. */
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

/** Converts an age such as `90m` to a timestamp; returns ISO 8601 unchanged. @throws ApiError for anything else */
function toInstant(given: string, field: string): string {
  const seconds = /[smhdw]$/.test(given) ? parseDuration(given) : null;
  const time = new Date(Date.now() - (seconds ?? 0) * 1000);
  if (seconds !== null && !Number.isNaN(time.getTime())) return time.toISOString();
  parseTimestamp(given, field, 'up');
  return given;
}

/** At least one second, in seconds. @throws UsageError */
function toSeconds(given: string, field: string): number {
  const seconds = parseDuration(given);
  if (seconds !== null && seconds >= 1) return seconds;
  throw new UsageError(`${field}: must be a number of seconds or a duration such as 90s, 15m or 2h`);
}

/** Flags that select the service and the identity. The settings read them, not the commands. */
export const CONNECTION_FLAGS = {
  address: text('URL', 'address of the service (LEASEHOLD_ADDR)'),
  agent: text('NAME', 'log in as this agent with its key (LEASEHOLD_AGENT)'),
  operator: text('NAME', 'log in as this operator with its key (LEASEHOLD_OPERATOR)'),
  'key-file': text('FILE', "the agent's or operator's private key, PEM or OpenSSH (LEASEHOLD_KEY_FILE)"),
  'token-file': text('FILE', 'read the token from this file (LEASEHOLD_TOKEN_FILE)'),
  'data-dir': text(
    'DIR',
    "data directory of a service on this machine, for its address and administrator's token (LEASEHOLD_DATA_DIR)",
  ),
  'ca-file': text('FILE', 'PEM file of certificate authorities; only these are trusted (LEASEHOLD_CA_FILE)'),
  profile: text('NAME', 'profile of leasehold.toml (LEASEHOLD_PROFILE)'),
  timeout: text('DURATION', 'timeout of each request, such as 10s (default 30s, or 11m for use; LEASEHOLD_TIMEOUT)'),
  'insecure-http': toggle('allow plain HTTP to another machine; its network can read every value'),
} as const satisfies Flags;

export const OUTPUT_FLAGS = {
  output: {
    ...text(FORMATS.join('|'), 'output format (default table, LEASEHOLD_OUTPUT)'),
    short: 'o',
  },
  field: text('NAME', 'print only this field'),
} as const satisfies Flags;

/** For commands that ask for confirmation. */
export const CONFIRMATION_FLAGS = {
  yes: toggle('do not ask for confirmation', { short: 'y' }),
  'dry-run': toggle('show what would change, and change nothing'),
} as const satisfies Flags;

export const TTL = parsed('DURATION', 'request shorter leases than the policies allow, such as 90s or 15m', toSeconds);

const HELP_FLAG = toggle('show this help', { short: 'h' });

/** All flags of the command, its own first. */
export function flagsOf({ flags = {}, isLocal, printsNoRecords }: Command): Flags {
  return {
    ...flags,
    ...(isLocal === true || printsNoRecords === true ? {} : OUTPUT_FLAGS),
    ...(isLocal === true ? {} : CONNECTION_FLAGS),
    help: HELP_FLAG,
  };
}
