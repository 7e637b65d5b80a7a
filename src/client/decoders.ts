/**
 * What each answer must decode, by hand, because a browser must not load the schemas; the compiler holds it against their types. Fields
 * that a newer service answers beside them are let through. Nothing of a wrong answer is repeated.
 */
import { LeaseholdError } from './errors.ts';
import type * as types from './types.ts';

/** Answers what it was given, as what it is. @throws LeaseholdError INVALID_RESPONSE */
export type Decoder<T> = (answer: unknown) => T;

const isText = (value: unknown): boolean => typeof value === 'string';
const isWhole = (value: unknown): boolean => Number.isSafeInteger(value);

const KINDS = {
  text: isText,
  'text or null': (value: unknown) => value === null || isText(value),
  integer: isWhole,
  'integer or null': (value: unknown) => value === null || isWhole(value),
  boolean: (value: unknown) => typeof value === 'boolean',
  texts: (value: unknown) => Array.isArray(value) && value.every(isText),
} as const;
type Kind = keyof typeof KINDS;

/** The one kind that a type has; rows within a row are held by themselves. */
type KindOf<T> = [T] extends [string]
  ? 'text'
  : [T] extends [number]
    ? 'integer'
    : [T] extends [boolean]
      ? 'boolean'
      : [T] extends [string | null]
        ? 'text or null'
        : [T] extends [number | null]
          ? 'integer or null'
          : [T] extends [readonly string[]]
            ? 'texts'
            : Decoder<T>;
type Shape<T> = { readonly [Field in keyof T]-?: KindOf<T[Field]> };

function object<T extends object>(shape: Shape<T>): Decoder<T> {
  const fields = Object.entries<Kind | Decoder<unknown>>(shape);
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
export function listOf<T>(decode: Decoder<T>): Decoder<T[]> {
  return (answer) => {
    if (!Array.isArray(answer)) throw wrong('it is no list');
    for (const row of answer) decode(row);
    return answer;
  };
}

function wrong(why: string): LeaseholdError {
  return new LeaseholdError('INVALID_RESPONSE', `the answer is not what a Leasehold answers: ${why}`);
}

const listed = {
  path: 'text',
  type: 'text',
  description: 'text',
  created_at: 'text',
  updated_at: 'text',
  access_count: 'integer',
} as const;
const registered = { name: 'text', public_key: 'text', registered_at: 'text' } as const;
type Verified<Valid extends boolean> = Extract<types.Verification, { valid: Valid }>;

export const decodeRetrieved = object<types.RetrievedWire>({
  path: 'text',
  value: 'text',
  lease_id: 'text',
  expires_at: 'text',
});
export const decodeStored = object<types.StoredCredential>({ path: 'text', type: 'text', created_at: 'text' });
export const decodeListed = object<types.ListedCredential>(listed);
export const decodeMetadata = object<types.CredentialMetadata>({
  ...listed,
  versions: listOf(object<types.CredentialMetadata['versions'][number]>({ version: 'integer', created_at: 'text' })),
});
export const decodePolicy = object<types.Policy>({
  name: 'text',
  principal: 'text',
  resources: 'texts',
  actions: 'texts',
  max_ttl: 'integer',
  created_at: 'text',
});
export const decodeSimulation = object<types.Simulation>({
  allowed: 'boolean',
  policy_name: 'text or null',
  lease_ttl: 'integer or null',
  reason: 'text',
});
export const decodeRegistered = object<types.RegisteredAgent>(registered);
export const decodeAgent = object<types.Agent>({ ...registered, description: 'text' });
export const decodeChallenge = object<types.Challenge>({ challenge_id: 'text', nonce: 'text', expires_at: 'text' });
export const decodeSession = object<types.SessionWire>({ session_id: 'text', agent_name: 'text', expires_at: 'text' });
export const decodeLease = object<types.Lease>({
  lease_id: 'text',
  agent_name: 'text',
  path: 'text',
  version: 'integer',
  policy_name: 'text',
  issued_at: 'text',
  expires_at: 'text',
  revoked_at: 'text or null',
  status: 'text',
});
export const decodeRevoked = object<types.Revoked>({ revoked: 'integer' });
export const decodeEntry = object<types.AuditEntry>({
  seq: 'integer',
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
const decodeVerdict = object<{ valid: boolean }>({ valid: 'boolean' });
const decodeSound = object<Verified<true>>({
  valid: 'boolean',
  entries: 'integer',
  first_entry: 'text or null',
  last_entry: 'text or null',
});
const decodeBroken = object<Verified<false>>({
  valid: 'boolean',
  break_at_entry: 'integer',
  break_at_timestamp: 'text or null',
  message: 'text',
});
export const decodeVerification: Decoder<types.Verification> = (answer) =>
  decodeVerdict(answer).valid ? decodeSound(answer) : decodeBroken(answer);
export const decodeProgress = object<types.VerificationProgress>({
  running: 'boolean',
  entries_checked: 'integer or null',
  entries_total: 'integer or null',
  started_at: 'text or null',
});
export const decodeHealth = object<types.Health>({ status: 'text' });
export const decodeMeta = object<types.Meta>({ total: 'integer', limit: 'integer', offset: 'integer' });
