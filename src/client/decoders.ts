/**
 * What each answer must hold, by hand, because a browser must not load the schemas; the compiler holds it against their types. Fields
 * that a newer service answers beside them are let through. Nothing of a wrong answer is repeated.
 */
import { LeaseholdError } from './errors.ts';
import type * as types from './types.ts';

/** Answers what it was given, as what it is. @throws LeaseholdError BAD_ANSWER */
export type Hold<T> = (answer: unknown) => T;

const isText = (value: unknown): boolean => typeof value === 'string';
const isWhole = (value: unknown): boolean => Number.isSafeInteger(value);

const KINDS = {
  text: isText,
  'text or null': (value: unknown) => value === null || isText(value),
  'whole number': isWhole,
  'whole number or null': (value: unknown) => value === null || isWhole(value),
  'yes or no': (value: unknown) => typeof value === 'boolean',
  texts: (value: unknown) => Array.isArray(value) && value.every(isText),
} as const;
type Kind = keyof typeof KINDS;

/** The one kind that a type has; rows within a row are held by themselves. */
type KindOf<T> = [T] extends [string]
  ? 'text'
  : [T] extends [number]
    ? 'whole number'
    : [T] extends [boolean]
      ? 'yes or no'
      : [T] extends [string | null]
        ? 'text or null'
        : [T] extends [number | null]
          ? 'whole number or null'
          : [T] extends [readonly string[]]
            ? 'texts'
            : Hold<T>;
type Shape<T> = { readonly [Field in keyof T]-?: KindOf<T[Field]> };

function holder<T extends object>(shape: Shape<T>): Hold<T> {
  const fields = Object.entries<Kind | Hold<unknown>>(shape);
  return (answer) => {
    if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) throw wrong('it is no record');
    const record = answer as Readonly<Record<string, unknown>>;
    for (const [field, kind] of fields) {
      if (typeof kind === 'function') kind(record[field]);
      else if (!KINDS[kind](record[field])) throw wrong(`${field} is missing, or no ${kind}`);
    }
    return answer as T;
  };
}

/** Each row of a list. */
export function listOf<T>(hold: Hold<T>): Hold<T[]> {
  return (answer) => {
    if (!Array.isArray(answer)) throw wrong('it is no list');
    for (const row of answer) hold(row);
    return answer;
  };
}

function wrong(why: string): LeaseholdError {
  return new LeaseholdError('BAD_ANSWER', `the answer is not what a Leasehold answers: ${why}`);
}

const listed = {
  path: 'text',
  type: 'text',
  description: 'text',
  created_at: 'text',
  updated_at: 'text',
  access_count: 'whole number',
} as const;
const registered = { name: 'text', public_key: 'text', registered_at: 'text' } as const;
type Verified<Valid extends boolean> = Extract<types.Verification, { valid: Valid }>;

export const holdRetrieved = holder<types.RetrievedText>({
  path: 'text',
  value: 'text',
  lease_id: 'text',
  expires_at: 'text',
});
export const holdStored = holder<types.StoredCredential>({ path: 'text', type: 'text', created_at: 'text' });
export const holdListed = holder<types.ListedCredential>(listed);
export const holdMetadata = holder<types.CredentialMetadata>({
  ...listed,
  versions: listOf(
    holder<types.CredentialMetadata['versions'][number]>({ version: 'whole number', created_at: 'text' }),
  ),
});
export const holdPolicy = holder<types.Policy>({
  name: 'text',
  principal: 'text',
  resources: 'texts',
  actions: 'texts',
  max_ttl: 'whole number',
  created_at: 'text',
});
export const holdSimulation = holder<types.Simulation>({
  allowed: 'yes or no',
  policy_name: 'text or null',
  lease_ttl: 'whole number or null',
  reason: 'text',
});
export const holdRegistered = holder<types.RegisteredAgent>(registered);
export const holdAgent = holder<types.Agent>({ ...registered, description: 'text' });
export const holdChallenge = holder<types.Challenge>({ challenge_id: 'text', nonce: 'text', expires_at: 'text' });
export const holdSession = holder<types.SessionText>({ session_id: 'text', agent_name: 'text', expires_at: 'text' });
export const holdLease = holder<types.Lease>({
  lease_id: 'text',
  agent_name: 'text',
  path: 'text',
  version: 'whole number',
  policy_name: 'text',
  issued_at: 'text',
  expires_at: 'text',
  revoked_at: 'text or null',
  status: 'text',
});
export const holdRevoked = holder<types.Revoked>({ revoked: 'whole number' });
export const holdEntry = holder<types.AuditEntry>({
  seq: 'whole number',
  id: 'text',
  timestamp: 'text',
  event_type: 'text',
  agent_name: 'text',
  resource: 'text',
  action: 'text',
  result: 'text',
  policy_name: 'text or null',
  lease_id: 'text or null',
  reason: 'text or null',
  request_id: 'text or null',
  remote_addr: 'text or null',
  hmac: 'text',
});
const holdVerdict = holder<{ valid: boolean }>({ valid: 'yes or no' });
const holdSound = holder<Verified<true>>({
  valid: 'yes or no',
  entries: 'whole number',
  first_entry: 'text or null',
  last_entry: 'text or null',
});
const holdBroken = holder<Verified<false>>({
  valid: 'yes or no',
  break_at_entry: 'whole number',
  break_at_timestamp: 'text or null',
  message: 'text',
});
export const holdVerification: Hold<types.Verification> = (answer) =>
  holdVerdict(answer).valid ? holdSound(answer) : holdBroken(answer);
export const holdProgress = holder<types.VerificationProgress>({
  running: 'yes or no',
  entries_checked: 'whole number or null',
  entries_total: 'whole number or null',
  started_at: 'text or null',
});
export const holdHealth = holder<types.Health>({ status: 'text' });
export const holdMeta = holder<types.Meta>({ total: 'whole number', limit: 'whole number', offset: 'whole number' });
