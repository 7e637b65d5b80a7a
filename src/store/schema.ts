/**
 * The tables of a vault, with the columns that all stores share: select lists, insert statements, decoders and the
 * transfer between stores come from here. The migrations define the same columns, and others that only one store has.
 */
import type { Agent, Session } from '../core/agent.ts';
import type { AuditEntry } from '../core/audit.ts';
import type { Credential, CredentialVersion } from '../core/credential.ts';
import type { Exposure } from '../core/exposure.ts';
import type { IdempotencyRecord } from '../core/idempotency.ts';
import type { Lease } from '../core/lease.ts';
import type { ChallengeId, CredentialId } from '../core/names.ts';
import type { Policy } from '../core/policy.ts';
import type { Usage } from '../core/target.ts';
import { type Row, raw, type Statement, type Value } from './statement.ts';
import type { Authenticated } from './store.ts';

/** A list is a JSON array of texts in a text column, and `json` any other JSON. */
export type ColumnType = 'text' | 'number' | 'bytes' | 'list' | 'json';

export interface Column {
  readonly property: string;
  readonly name: string;
  readonly type: ColumnType;
}

export class Table<T> {
  readonly name: string;
  /** Names of the columns of the sort key; text is compared byte by byte. */
  readonly key: readonly string[];
  readonly columns: readonly Column[];
  /** The column names, separated by commas. */
  readonly list: Statement;

  /** The columns in order: the name of each is that of its property in snake case. */
  constructor(name: string, key: readonly string[], types: Readonly<Record<keyof T & string, ColumnType>>) {
    this.name = name;
    this.key = key;
    this.columns = Object.entries<ColumnType>(types).map(([property, type]) => ({
      property,
      name: property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      type,
    }));
    this.list = this.listOf('');
  }

  /** The column names, each with the prefix. */
  listOf(prefix: string): Statement {
    return raw(this.columns.map(({ name }) => prefix + name).join(', '));
  }

  decode(row: Row): T {
    const decoded: Record<string, unknown> = {};
    for (const { property, name, type } of this.columns) {
      const value = row[name];
      decoded[property] = value === null || value === undefined ? null : DECODE[type](value);
    }
    return decoded as T;
  }

  /** In the order of the columns. */
  encode(item: T): Value[] {
    const properties = item as Readonly<Record<string, Value | undefined>>;
    return this.columns.map(({ property, type }) =>
      type === 'list' || type === 'json' ? JSON.stringify(properties[property]) : (properties[property] ?? null),
    );
  }
}

export function toValue(value: unknown): Value {
  return typeof value === 'string' || typeof value === 'number' || value instanceof Uint8Array ? value : null;
}

const DECODE: Readonly<Record<ColumnType, (value: unknown) => unknown>> = {
  text: String,
  number: Number,
  bytes: (value) => (value instanceof Uint8Array ? value : new Uint8Array()),
  list: (value) => toList(String(value)),
  json: (value) => toJson(String(value)),
};

/** Invalid JSON means an altered row, whose MAC does not match either. */
function toList(json: string): string[] {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export const AUDIT_ENTRIES = new Table<AuditEntry>('audit_entries', ['seq'], {
  seq: 'number',
  id: 'text',
  timestamp: 'text',
  event_type: 'text',
  agent_name: 'text',
  resource: 'text',
  action: 'text',
  result: 'text',
  policy_name: 'text',
  lease_id: 'text',
  reason: 'text',
  request_id: 'text',
  remote_addr: 'text',
  hmac: 'text',
  method: 'text',
  host: 'text',
  target_path: 'text',
  status: 'number',
  bytes_in: 'number',
  bytes_out: 'number',
  redactions: 'number',
  ended: 'text',
});

export const AGENTS = new Table<Authenticated<Agent>>('agents', ['id'], {
  id: 'text',
  name: 'text',
  description: 'text',
  publicKey: 'text',
  registeredAt: 'number',
  sessionsEndedAt: 'number',
  mac: 'text',
});

export const POLICIES = new Table<Authenticated<Policy>>('policies', ['name'], {
  name: 'text',
  principal: 'text',
  resources: 'list',
  actions: 'list',
  maxTtlSeconds: 'number',
  createdAt: 'number',
  mac: 'text',
});

export const SESSIONS = new Table<Authenticated<Session>>('sessions', ['token_hash'], {
  tokenHash: 'text',
  agentId: 'text',
  issuedAt: 'number',
  expiresAt: 'number',
  mac: 'text',
});

export const SPENT_CHALLENGES = new Table<{ readonly id: ChallengeId; readonly expiresAt: number }>(
  'spent_challenges',
  ['id'],
  { id: 'text', expiresAt: 'number' },
);

export const IDEMPOTENCY_RECORDS = new Table<Authenticated<IdempotencyRecord>>('idempotency_records', ['id'], {
  id: 'text',
  agentId: 'text',
  requestMac: 'text',
  reply: 'text',
  expiresAt: 'number',
  mac: 'text',
});

export const CREDENTIALS = new Table<Authenticated<Credential>>('credentials', ['path'], {
  id: 'text',
  path: 'text',
  type: 'text',
  description: 'text',
  createdAt: 'number',
  updatedAt: 'number',
  version: 'number',
  mac: 'text',
});

export type VersionRow = Omit<CredentialVersion, 'content'> & {
  readonly credentialId: CredentialId;
  readonly sealed: Uint8Array;
};

export const CREDENTIAL_VERSIONS = new Table<VersionRow>('credential_versions', ['credential_id', 'version'], {
  credentialId: 'text',
  version: 'number',
  type: 'text',
  createdAt: 'number',
  sealed: 'bytes',
});

/** The count includes all retrievals. */
export const ACCESS_COUNTS = new Table<{ readonly credentialId: CredentialId; readonly count: number }>(
  'access_counts',
  ['credential_id'],
  { credentialId: 'text', count: 'number' },
);

export const LEASES = new Table<Lease>('leases', ['seq'], {
  seq: 'number',
  id: 'text',
  kind: 'text',
  agentId: 'text',
  credentialId: 'text',
  agentName: 'text',
  path: 'text',
  version: 'number',
  policyName: 'text',
  issuedAt: 'number',
  expiresAt: 'number',
  revokedAt: 'number',
  tokenHash: 'text',
});

/** Where credentials may be used. */
export const USAGES = new Table<Authenticated<Usage>>('usages', ['path'], {
  credentialId: 'text',
  path: 'text',
  service: 'text',
  targets: 'json',
  placement: 'json',
  updatedAt: 'number',
  mac: 'text',
});

/** An empty text means any agent, any credential or any kind. */
export const BULK_REVOCATIONS = new Table<{
  readonly seq: number;
  readonly agentId: string;
  readonly credentialId: string;
  readonly kind: string;
  readonly revokedAt: number;
}>('bulk_revocations', ['seq'], {
  seq: 'number',
  agentId: 'text',
  credentialId: 'text',
  kind: 'text',
  revokedAt: 'number',
});

/** Who has seen or used a version: uses with a token, and what the leases up to `exposure_progress` say. */
export const EXPOSURES = new Table<Exposure>('exposures', ['path', 'credential_id', 'version', 'kind', 'agent_name'], {
  path: 'text',
  credentialId: 'text',
  version: 'number',
  kind: 'text',
  agentName: 'text',
  firstAt: 'number',
  lastAt: 'number',
  times: 'number',
});

/** One row, with the id 1; none before the first lease is folded into the exposures. */
export const EXPOSURE_PROGRESS = new Table<{ readonly id: number; readonly throughSeq: number }>(
  'exposure_progress',
  ['id'],
  { id: 'number', throughSeq: 'number' },
);

/** All tables, except the single rows of `vault` and `audit_head`, in an order in which they can be copied. */
export const TABLES: readonly Table<object>[] = [
  AUDIT_ENTRIES,
  AGENTS,
  POLICIES,
  SESSIONS,
  SPENT_CHALLENGES,
  IDEMPOTENCY_RECORDS,
  CREDENTIALS,
  CREDENTIAL_VERSIONS,
  ACCESS_COUNTS,
  LEASES,
  USAGES,
  BULK_REVOCATIONS,
  EXPOSURES,
  EXPOSURE_PROGRESS,
];
