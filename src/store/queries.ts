/** Queries on the lists and the log of a store, and the results of their steps. */

import type { ActorName, AgentId } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import type { PathRange } from '../core/pattern.ts';
import type { ApprovalStatus } from '../vault/approvals/approval.ts';
import type { BulkRevocation, LeaseStatus } from '../vault/leases/lease.ts';

export interface AuditFilter {
  readonly agentName: string | null;
  /** A glob: `*` matches any characters, `?` one. */
  readonly resource: string | null;
  readonly action: string | null;
  readonly eventType: string | null;
  readonly result: string | null;
}

/** Sequence numbers, both inclusive, and which of them comes first. */
export interface EntryRange {
  readonly from: number;
  readonly to: number;
  readonly order: 'asc' | 'desc';
}

export interface CredentialListQuery {
  /** The ranges in order, without overlaps. */
  readonly ranges: readonly PathRange[];
  readonly type: string | null;
}

export interface LeaseQuery {
  readonly agentId: AgentId | null;
  readonly agentName: string | null;
  readonly path: CredentialPath | null;
  readonly status: LeaseStatus | null;
  /** Milliseconds; decides which leases are active, and which ended too long ago to be listed. */
  readonly now: number;
}

/** Position in the list of credentials: after the path `after` in the range with that index. */
export interface CredentialCursor {
  readonly range: number;
  readonly after: string;
}

export const FIRST_CREDENTIAL: CredentialCursor = { range: 0, after: '' };
/** Leases are listed newest first; the cursor is the sequence number of the last one read. */
export const NEWEST_LEASE = Number.MAX_SAFE_INTEGER;

/** The number of approvals of one key that a decision reads, the newest ones. */
export const MAX_APPROVALS_OF_KEY = 16;

export interface ApprovalQuery {
  readonly agentId: AgentId | null;
  readonly agentName: string | null;
  readonly status: ApprovalStatus | null;
  /** Milliseconds; decides which ones have timed out. */
  readonly now: number;
}

/** Approvals are listed newest first; the cursor is the id of the last one read, and greater than any at first. */
export const NEWEST_APPROVAL = '~';

/** The rows of a step, and the cursor of the next one: null at the end of the list. */
export interface ListStep<Row, Cursor> {
  readonly rows: readonly Row[];
  readonly next: Cursor | null;
}

export interface CountStep<Cursor> {
  readonly count: number;
  readonly next: Cursor | null;
}

/** The leases that a bulk revocation applies to; `agentName` is the name of its agent, or null if it has no agent. */
export interface RevokedLeases {
  readonly revocation: BulkRevocation;
  readonly agentName: ActorName | null;
}
