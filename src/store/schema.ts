/**
 * The tables of a vault, with the columns that all stores share: the only list of them. Their SQL, select lists, insert
 * statements and MACs, backups, and the rules that a restore checks come from here. The migrations add the columns that
 * only one store has.
 */

import type { Resource, RowOf } from '../core/change.ts';
import type { IdempotencyRecord } from '../core/idempotency.ts';
import type { ChallengeId, CredentialId } from '../core/names.ts';
import { Agent } from '../vault/agents/agent.ts';
import { APPROVAL_ROWS, type ApprovalRequest } from '../vault/approvals/approval.ts';
import { type AuditEntry, ENTRY_COLUMNS, ENTRY_FIELDS } from '../vault/audit/audit-entry.ts';
import { CREDENTIAL_ROWS, type CredentialVersion, MAX_VALUE_BYTES } from '../vault/credentials/credential.ts';
import { EXPOSURE_ROWS } from '../vault/exposure/exposure-record.ts';
import type { EncryptedKeyset, WrappedKeySlot } from '../vault/keys/keyset.ts';
import { LEASE_ROWS } from '../vault/leases/lease.ts';
import { Operator } from '../vault/operators/operator.ts';
import { Policy } from '../vault/policies/policy.ts';
import { SESSION_ROWS } from '../vault/sessions/session.ts';
import { MAX_TARGETS, type TargetBinding } from '../vault/use/target.ts';
import * as is from './column-rules.ts';
import type { Authenticated, StoredTreeNode } from './store.ts';
import { bytes, json, MAX_HELD_ROWS, nullable, number, Table, text } from './table.ts';
import * as rule from './value-rules.ts';

/** Rows whose ids a restore holds in memory. */
const MAX_CREDENTIALS = 10_000_000;
const MAX_SLOTS = 1000;

export const AGENTS = Table.of(Agent);

const OPERATORS = Table.of(Operator);
const POLICIES = Table.of(Policy);

export const SESSIONS = Table.of(SESSION_ROWS, {});

export const SPENT_CHALLENGES = new Table<{ readonly id: ChallengeId; readonly expiresAt: number }>(
  'spent_challenges',
  ['id'],
  {
    id: text(is.uuid),
    expiresAt: number(is.time),
  },
);

export const IDEMPOTENCY_RECORDS = new Table<Authenticated<IdempotencyRecord>>('idempotency_records', ['id'], {
  id: text(is.mac),
  agentId: text(is.holderId),
  requestMac: text(is.mac),
  reply: text(rule.json(is.JSON_LENGTH, rule.nestedWithin(64))),
  expiresAt: number(is.time),
  mac: text(is.mac),
});

export const CREDENTIALS = Table.of(CREDENTIAL_ROWS, { maxRows: MAX_CREDENTIALS });

export type VersionRow = Omit<CredentialVersion, 'content'> & {
  readonly credentialId: CredentialId;
  readonly sealed: Uint8Array;
};

export const CREDENTIAL_VERSIONS = new Table<VersionRow>('credential_versions', ['credential_id', 'version'], {
  credentialId: text(is.uuid),
  version: number(is.positive),
  type: text(is.credentialType),
  createdAt: number(is.time),
  sealed: bytes(rule.base64(1, MAX_VALUE_BYTES + 1024)),
});

/** The count includes all retrievals. */
export const ACCESS_COUNTS = new Table<{ readonly credentialId: CredentialId; readonly count: number }>(
  'access_counts',
  ['credential_id'],
  {
    credentialId: text(is.uuid),
    count: number(is.count),
  },
);

export const LEASES = Table.ofUnsigned(LEASE_ROWS);

export const CREDENTIAL_TARGETS = new Table<Authenticated<TargetBinding>>('credential_targets', ['path'], {
  credentialId: text(is.uuid),
  path: text(is.path),
  service: nullable(text(rule.matching(/^[a-z0-9-]{1,64}$/, 64, 'must be the name of a service'))),
  targets: json(rule.listOf(is.target, 1, MAX_TARGETS)),
  placement: json(is.placement),
  updatedAt: number(is.time),
  mac: text(is.mac),
});

/** An empty text means any agent, any credential or any kind. */
export const BULK_REVOCATIONS = new Table<{
  readonly seq: number;
  readonly agentId: string;
  readonly credentialId: string;
  readonly kind: string;
  readonly revokedAt: number;
}>('bulk_revocations', ['seq'], {
  seq: number(is.positive),
  agentId: text(rule.either(is.empty, is.holderId)),
  credentialId: text(rule.either(is.empty, is.uuid)),
  kind: text(rule.either(is.empty, is.leaseKind)),
  revokedAt: number(is.time),
});

/** Who has seen or used a version: uses with a token, and what the leases up to `exposure_progress` say. */
export const EXPOSURES = Table.ofUnsigned(EXPOSURE_ROWS);

/** One row, with the id 1; none before the first lease is folded into the exposures. */
const EXPOSURE_PROGRESS = new Table<{ readonly id: number; readonly throughSeq: number }>(
  'exposure_progress',
  ['id'],
  {
    id: number(rule.equalTo(1)),
    throughSeq: number(is.count),
  },
  { maxRows: 1 },
);

const LOG_STREAMS = new Table<{ readonly name: string; readonly seq: number }>(
  'log_streams',
  ['name'],
  {
    name: text(rule.matching(/^[a-z][a-z0-9+-]{0,31}$/, 32, 'must be the name of a log stream')),
    seq: number(is.count),
  },
  { maxRows: MAX_HELD_ROWS },
);

function entryColumn(name: keyof typeof ENTRY_COLUMNS) {
  const type = ENTRY_COLUMNS[name];
  const column = type.startsWith('text') ? text(is.ENTRY_RULES[name]) : number(is.ENTRY_RULES[name]);
  return [name, type.endsWith('?') ? nullable(column) : column] as const;
}

export const AUDIT_ENTRIES = new Table<AuditEntry>(
  'audit_entries',
  ['seq'],
  Object.fromEntries(ENTRY_FIELDS.map(entryColumn)) as never,
);

export const AUDIT_TREE = new Table<StoredTreeNode>('audit_tree', ['level', 'position'], {
  level: number(rule.integer(1, 64)),
  position: number(is.count),
  hash: text(is.bytes32),
});

/** A signed note about the first `size` entries. */
export interface StoredCheckpoint {
  /** The generation of the signing key. */
  readonly generation: number;
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly signedAt: number;
  readonly note: string;
}

export const CHECKPOINTS = new Table<StoredCheckpoint>('checkpoints', ['generation', 'size'], {
  generation: number(is.positive),
  size: number(is.count),
  signedAt: number(is.time),
  note: text(rule.anyText(65_536)),
});

export const APPROVALS = Table.of(APPROVAL_ROWS, {});

/** The encrypted request that each approval is about. */
export const APPROVAL_REQUESTS = new Table<ApprovalRequest>('approval_requests', ['id'], {
  id: text(is.uuid),
  expiresAt: number(is.time),
  sealed: bytes(rule.base64(1, 8 * 1024 * 1024)),
});

/** One row, with the id 1. */
export const KEYSET = new Table<EncryptedKeyset & { readonly id: number }>(
  'keyset',
  ['id'],
  {
    id: number(rule.equalTo(1)),
    version: number(is.positive),
    rootVersion: number(is.positive),
    sealed: bytes(is.keyset.sealed),
  },
  { maxRows: 1 },
);

export const KEY_SLOTS = new Table<Authenticated<WrappedKeySlot>>(
  'key_slots',
  ['id'],
  {
    id: text(is.uuid),
    name: text(is.slotName),
    kind: text(is.slotKind),
    parameters: json(is.slotParameters),
    publicKey: text(is.bytes32),
    createdAt: number(is.time),
    rootVersion: number(is.positive),
    sealedRoot: bytes(is.sealedRoot),
    mac: text(is.mac),
  },
  { maxRows: MAX_SLOTS, unique: 'name' },
);

export const DATA_KEY_SEALS = new Table<{ readonly keyId: string; readonly seals: number }>(
  'data_key_seals',
  ['key_id'],
  {
    keyId: text(rule.matching(/^[0-9a-f]{8}$/, 8, 'must be 8 hexadecimal digits')),
    seals: number(is.count),
  },
  { maxRows: MAX_HELD_ROWS },
);

export type ResourceTables = { readonly [R in Resource]: Table<Authenticated<RowOf[R]>> };

/** The tables whose rows have a MAC. */
export const RESOURCE_TABLES: ResourceTables = {
  agent: AGENTS,
  operator: OPERATORS,
  policy: POLICIES,
  session: SESSIONS,
  credential: CREDENTIALS,
  targets: CREDENTIAL_TARGETS,
  approval: APPROVALS,
  reply: IDEMPOTENCY_RECORDS,
};

/** All tables, except the single rows of `vault` and `audit_head`, in an order in which they can be copied. */
export const TABLES: readonly Table<object>[] = [
  AUDIT_ENTRIES,
  AUDIT_TREE,
  CHECKPOINTS,
  AGENTS,
  OPERATORS,
  POLICIES,
  SESSIONS,
  SPENT_CHALLENGES,
  IDEMPOTENCY_RECORDS,
  CREDENTIALS,
  CREDENTIAL_VERSIONS,
  ACCESS_COUNTS,
  LEASES,
  CREDENTIAL_TARGETS,
  APPROVALS,
  APPROVAL_REQUESTS,
  BULK_REVOCATIONS,
  EXPOSURES,
  EXPOSURE_PROGRESS,
  KEYSET,
  KEY_SLOTS,
  DATA_KEY_SEALS,
  LOG_STREAMS,
];

/** The number of the last migration that is a script. */
const LAST_SCRIPT = 1;
/** The number of the last migration, after which the tables are these. */
export const NEWEST_SCHEMA = Math.max(
  LAST_SCRIPT,
  ...TABLES.flatMap(({ columns }) => columns.map(({ since }) => since)),
);
