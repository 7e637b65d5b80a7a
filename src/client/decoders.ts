/**
 * Checks the fields of each response; other fields are accepted, and errors never quote it. WHY not the schemas of
 * `src/api`: a browser would have to load them. The compiler checks these decoders against their types.
 */
import { LeaseholdError } from './errors.ts';
import type * as types from './types.ts';

/** Returns its argument, typed. @throws LeaseholdError INVALID_RESPONSE */
export type Decoder<T> = (body: unknown) => T;

export const isText = (value: unknown): boolean => typeof value === 'string';
const isWhole = (value: unknown): boolean => Number.isSafeInteger(value);

const isListOfText = (value: unknown): boolean => Array.isArray(value) && value.every(isText);

const KINDS = {
  text: isText,
  'text or null': (value: unknown) => value === null || isText(value),
  integer: isWhole,
  number: Number.isFinite,
  'integer or null': (value: unknown) => value === null || isWhole(value),
  'optional text': (value: unknown) => value === undefined || value === null || isText(value),
  'optional integer': (value: unknown) => value === undefined || value === null || isWhole(value),
  boolean: (value: unknown) => typeof value === 'boolean',
  'list of text': isListOfText,
  'optional list of text': (value: unknown) => value === undefined || isListOfText(value),
} as const;
type Kind = keyof typeof KINDS;

/** The kind that a field's type requires; a nested list needs a decoder. */
type KindOf<T> = [T] extends [string]
  ? 'text'
  : [T] extends [number]
    ? 'integer' | 'number'
    : [T] extends [boolean]
      ? 'boolean'
      : [T] extends [string | null]
        ? 'text or null'
        : [T] extends [number | null]
          ? 'integer or null'
          : [T] extends [string | null | undefined]
            ? 'optional text'
            : [T] extends [number | null | undefined]
              ? 'optional integer'
              : [T] extends [readonly string[]]
                ? 'list of text'
                : [T] extends [readonly string[] | undefined]
                  ? 'optional list of text'
                  : Decoder<T>;
type Shape<T> = { readonly [Field in keyof T]-?: KindOf<T[Field]> };

export function object<T extends object>(shape: Shape<T>): Decoder<T> {
  const fields = Object.entries<Kind | Decoder<unknown>>(shape);
  return (body) => {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('an object is required');
    const record = body as Readonly<Record<string, unknown>>;
    for (const [field, kind] of fields) {
      if (typeof kind === 'function') kind(record[field]);
      else if (!KINDS[kind](record[field])) throw invalid(`${field} must be ${kind}`);
    }
    return body as T;
  };
}

/** For a field that may be left out. */
export function optional<T>(decode: Decoder<T>): Decoder<T | undefined> {
  return (body) => (body === undefined ? undefined : decode(body));
}

/** For a field that may be null. */
export function nullable<T>(decode: Decoder<T>): Decoder<T | null> {
  return (body) => (body === null ? null : decode(body));
}

/** Decodes each row of a list. */
export function listOf<T>(decode: Decoder<T>): Decoder<T[]> {
  return (body) => {
    if (!Array.isArray(body)) throw invalid('a list is required');
    for (const row of body) decode(row);
    return body;
  };
}

export function invalid(rule: string): LeaseholdError {
  return new LeaseholdError('INVALID_RESPONSE', `the response is invalid: ${rule}`);
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
export const decodeSimulation = object<types.Simulation>({
  allowed: 'boolean',
  policy_name: 'text or null',
  lease_ttl: 'integer or null',
  reason: 'text',
});
export const decodeRegistered = object<types.RegisteredAgent>(registered);
export const decodeAgent = object<types.Agent>({ ...registered, description: 'text' });
export const decodeRotatedAgent = object<types.RotatedAgent>({
  name: 'text',
  public_key: 'text',
  former_key_until: 'text or null',
});
export const decodeChallenge = object<types.Challenge>({ challenge_id: 'text', nonce: 'text', expires_at: 'text' });
const session = {
  agent_name: 'text',
  expires_at: 'text',
  expires_in: 'integer',
  roles: 'optional list of text',
  ends_at: 'optional text',
} as const;
export const decodeSession = object<types.SessionWire>({ ...session, session_id: 'text' });
export const decodeCurrentSession = object<types.CurrentSessionWire>({ ...session, session_id: 'optional text' });
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
type VersionExposure = types.CredentialExposure['versions'][number];
const decodeAgents = listOf(
  object<VersionExposure['seen_by'][number]>({
    agent_name: 'text',
    first_at: 'text',
    last_at: 'text',
    times: 'integer',
    live: 'boolean',
  }),
);
export const decodeExposure = object<types.CredentialExposure>({
  path: 'text',
  versions: listOf(
    object<VersionExposure>({
      version: 'integer',
      deleted: 'boolean',
      seen_by: decodeAgents,
      used_by: decodeAgents,
    }),
  ),
});
const decodeVersions = listOf(
  object<types.Panicked['rotate'][number]>({ path: 'text', version: 'integer', current: 'boolean' }),
);
export const decodeHeld = object<types.Held>({ leases: 'integer', sessions: 'integer', streams: 'integer' });
export const decodePanicked = object<types.Panicked>({
  leases: 'integer',
  sessions: 'integer',
  streams: 'integer',
  rotate: decodeVersions,
  used_only: decodeVersions,
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
  method: 'optional text',
  host: 'optional text',
  target_path: 'optional text',
  status: 'optional integer',
  bytes_in: 'optional integer',
  bytes_out: 'optional integer',
  redactions: 'optional integer',
  ended: 'optional text',
});
type Target = types.CredentialTargets['targets'][number];
export const decodeTargets = object<types.CredentialTargets>({
  path: 'text',
  service: 'text or null',
  targets: listOf(
    object<Target>({
      origin: 'text',
      paths: 'list of text',
      methods: 'list of text',
      allow_networks: 'list of text',
      ca_pem: 'text or null',
    }),
  ),
  placement: object<types.CredentialTargets['placement']>({
    kind: 'text',
    name: 'optional text',
    template: 'optional text',
    username: 'optional text',
  }),
  updated_at: 'text',
});
export const decodeProgress = object<types.VerificationProgress>({
  running: 'boolean',
  entries_checked: 'integer or null',
  entries_total: 'integer or null',
  rows_checked: 'optional integer',
  started_at: 'text or null',
});
export const decodeHealth = object<types.Health>({ status: 'text' });
export const decodeRollback = object<types.Rollback>({ loss: 'text or null' });
export const decodeMeta = object<types.Meta>({ total: 'integer', limit: 'integer', offset: 'integer' });
