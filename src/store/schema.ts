/**
 * The tables of a vault, with the columns that all stores share: select lists, insert statements, backups and
 * restores come from here. The migrations define the same columns, and others that only one store has.
 */
import type { Agent, Session } from '../core/agent.ts';
import type { Approval, ApprovalRequest } from '../core/approval.ts';
import type { AuditEntry } from '../core/audit.ts';
import type { Resource, RowOf } from '../core/change.ts';
import type { Credential, CredentialVersion } from '../core/credential.ts';
import type { IdempotencyRecord } from '../core/idempotency.ts';
import type { SealedKeyset, WrappedKeySlot } from '../core/keyset.ts';
import type { Exposure, Lease } from '../core/lease.ts';
import type { ChallengeId, CredentialId } from '../core/names.ts';
import type { Operator } from '../core/operator.ts';
import type { Usage } from '../core/target.ts';
import { Policy } from '../vault/policies/policy.ts';
import type { Authenticated, StoredTreeNode } from './store.ts';
import { Table } from './table.ts';

export const AGENTS = new Table<Authenticated<Agent>>('agents', ['id'], {
  id: 'text',
  name: 'text',
  description: 'text',
  publicKey: 'text',
  registeredAt: 'number',
  sessionsEndedAt: 'number',
  formerPublicKey: 'text',
  formerKeyUntil: 'number',
  registeredBy: 'list',
  mac: 'text',
});

export const OPERATORS = new Table<Authenticated<Operator>>('operators', ['id'], {
  id: 'text',
  name: 'text',
  description: 'text',
  roles: 'list',
  publicKey: 'text',
  passkeys: 'json',
  identity: 'json',
  addedAt: 'number',
  sessionsEndedAt: 'number',
  mac: 'text',
});

export const POLICIES = Table.of(Policy);

export const SESSIONS = new Table<Authenticated<Session>>('sessions', ['token_hash'], {
  tokenHash: 'text',
  agentId: 'text',
  issuedAt: 'number',
  expiresAt: 'number',
  endsAt: 'number',
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
const EXPOSURE_PROGRESS = new Table<{ readonly id: number; readonly throughSeq: number }>('exposure_progress', ['id'], {
  id: 'number',
  throughSeq: 'number',
});

const LOG_STREAMS = new Table<{ readonly name: string; readonly seq: number }>('log_streams', ['name'], {
  name: 'text',
  seq: 'number',
});

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
  subject: 'text',
  state: 'text',
});

export const AUDIT_TREE = new Table<StoredTreeNode>('audit_tree', ['level', 'position'], {
  level: 'number',
  position: 'number',
  hash: 'text',
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
  generation: 'number',
  size: 'number',
  signedAt: 'number',
  note: 'text',
});

export const APPROVALS = new Table<Authenticated<Approval>>('approvals', ['id'], {
  id: 'text',
  nonce: 'text',
  agentId: 'text',
  agentName: 'text',
  tokenHash: 'text',
  action: 'text',
  path: 'text',
  key: 'text',
  basis: 'text',
  terms: 'json',
  method: 'text',
  host: 'text',
  targetPath: 'text',
  purpose: 'text',
  status: 'text',
  requestedAt: 'number',
  answerBy: 'number',
  approvers: 'json',
  endedBy: 'text',
  endedAt: 'number',
  reason: 'text',
  usesLeft: 'number',
  grantEndsAt: 'number',
  expiresAt: 'number',
  mac: 'text',
});

/** What each approval is about, sealed. */
export const APPROVAL_REQUESTS = new Table<ApprovalRequest>('approval_requests', ['id'], {
  id: 'text',
  expiresAt: 'number',
  sealed: 'bytes',
});

/** One row, with the id 1. */
export const KEYSET = new Table<SealedKeyset & { readonly id: number }>('keyset', ['id'], {
  id: 'number',
  version: 'number',
  rootVersion: 'number',
  sealed: 'bytes',
});

export const KEY_SLOTS = new Table<Authenticated<WrappedKeySlot>>('key_slots', ['id'], {
  id: 'text',
  name: 'text',
  kind: 'text',
  parameters: 'json',
  publicKey: 'text',
  createdAt: 'number',
  rootVersion: 'number',
  sealedRoot: 'bytes',
  mac: 'text',
});

export const DATA_KEY_SEALS = new Table<{ readonly keyId: string; readonly seals: number }>(
  'data_key_seals',
  ['key_id'],
  { keyId: 'text', seals: 'number' },
);

export type ResourceTables = { readonly [R in Resource]: Table<Authenticated<RowOf[R]>> };

/** The tables whose rows have a MAC. */
export const RESOURCE_TABLES: ResourceTables = {
  agent: AGENTS,
  operator: OPERATORS,
  policy: POLICIES,
  session: SESSIONS,
  credential: CREDENTIALS,
  targets: USAGES,
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
  USAGES,
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
