/** What is asked of a store's lists and of its log, and what a step of them answers. */
import type { BulkRevocation, LeaseStatus } from '../core/lease.ts';
import type { ActorName, AgentId } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import type { PathRange } from '../core/pattern.ts';

export interface AuditFilter {
  readonly agentName: string | null;
  /** A glob: `*` any run of characters, `?` one. */
  readonly resource: string | null;
  readonly action: string | null;
  readonly eventType: string | null;
  readonly result: string | null;
}

export interface CredentialQuery {
  /** In order, not overlapping. */
  readonly ranges: readonly PathRange[];
  readonly type: string | null;
}

export interface LeaseQuery {
  readonly agentId: AgentId | null;
  readonly agentName: string | null;
  readonly path: CredentialPath | null;
  readonly status: LeaseStatus | null;
  /** Milliseconds; tells which are active, and which ended too long ago to be listed. */
  readonly now: number;
}

/**
 * A place in the list of credentials: behind the path `after` in the range of that index. What a step reached, or
 * `FIRST_CREDENTIAL`.
 */
export interface CredentialCursor {
  readonly range: number;
  readonly after: string;
}

export const FIRST_CREDENTIAL: CredentialCursor = { range: 0, after: '' };
/** Leases go from the newest on, each place is the ordinal of the one before it. */
export const NEWEST_LEASE = Number.MAX_SAFE_INTEGER;

/** What a step of a list found, and where the next one goes on: null where the list ends. */
export interface ListStep<Row, Place> {
  readonly rows: readonly Row[];
  readonly next: Place | null;
}

/** As `Listed`, for a step that only counts. */
export interface CountStep<Place> {
  readonly count: number;
  readonly next: Place | null;
}

/** The leases that a mark covers; `agentName` is that of its agent, and null where it has none. */
export interface RevokedLeases {
  readonly mark: BulkRevocation;
  readonly agentName: ActorName | null;
}

/** What a step of a search in the log found, and the ordinal at which the next one begins: null where the range ends. */
export interface Matches {
  /** Of the entries that fit, in the order that was asked for. */
  readonly seqs: readonly number[];
  readonly next: number | null;
}
