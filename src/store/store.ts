/**
 * The storage port and its contract, which `test/contract` checks for every store. A store only keeps rows: it makes no
 * decisions, decrypts no value and knows no key.
 *
 * Errors: a method rejects only with a `StoreError`.
 */
import type { Agent, Session } from '../core/agent.ts';
import type { AuditEntry } from '../core/audit.ts';
import type { ReadSet, VersionInfo } from '../core/batch-state.ts';
import type { DirectChange } from '../core/change.ts';
import type { CountedCredential, Credential, CredentialVersion, Sealed } from '../core/credential.ts';
import type { IdempotencyRecord } from '../core/idempotency.ts';
import { ENDED_LEASE_RETENTION_MS, type Lease } from '../core/lease.ts';
import type { AgentId, AgentName, ChallengeId, CredentialId, PolicyName, TokenHash } from '../core/names.ts';
import { MAX_TTL_SECONDS, type Policy } from '../core/policy.ts';
import type { PostgresAddress } from './postgres/address.ts';
import type {
  AuditFilter,
  CountStep,
  CredentialCursor,
  CredentialListQuery,
  LeaseQuery,
  ListStep,
  Matches,
  RevokedLeases,
} from './queries.ts';

/** A row with the MAC that the vault computed; the store only keeps it. */
export type Authenticated<T> = T & { readonly mac: string };

/** The head record of the audit log. `epoch` counts the batches that changed the control state. */
export interface Head {
  readonly seq: number;
  readonly hmac: string;
  readonly mac: string;
  readonly epoch: number;
}

/** The rows that the read sets of a transaction name; missing rows are omitted. */
export interface LoadedFromStore {
  readonly credentials: readonly Authenticated<Credential>[];
  readonly versions: readonly { readonly credentialId: CredentialId; readonly version: CredentialVersion }[];
  readonly histories: readonly { readonly credentialId: CredentialId; readonly versions: readonly VersionInfo[] }[];
  readonly sessions: readonly Authenticated<Session>[];
  readonly leases: readonly Lease[];
  readonly spentChallenges: readonly ChallengeId[];
  readonly idempotencyRecords: readonly Authenticated<IdempotencyRecord>[];
}

/** A change as it is stored: values encrypted, rows that affect decisions with their MACs. */
export type StoredChange =
  | DirectChange
  | { readonly kind: 'putAgent'; readonly agent: Authenticated<Agent> }
  | { readonly kind: 'putPolicy'; readonly policy: Authenticated<Policy> }
  | { readonly kind: 'putSession'; readonly session: Authenticated<Session> }
  /** Creates the credential, or replaces its metadata. */
  | { readonly kind: 'putCredential'; readonly credential: Authenticated<Credential> }
  /** Replaces a record with the same id. */
  | { readonly kind: 'saveIdempotencyRecord'; readonly record: Authenticated<IdempotencyRecord> }
  | {
      readonly kind: 'addVersion';
      readonly credentialId: CredentialId;
      readonly version: Omit<CredentialVersion, 'content'>;
      readonly sealed: Sealed;
    };

export interface WriteSet {
  /** In order, without gaps, following the head at the beginning of the transaction. */
  readonly entries: readonly AuditEntry[];
  readonly head: Head;
  /** In the order in which they were decided. */
  readonly changes: readonly StoredChange[];
  /**
   * Successful retrievals of each credential; each is also an entry and a new lease. The store decides when to add them
   * to the stored counts, but every count that it returns is exact and includes the retrievals of all nodes.
   */
  readonly accesses: ReadonlyMap<CredentialId, number>;
}

/** `durable` resolves when the batch survives a power failure, and rejects only with `fatal`. */
export interface Committed {
  readonly durable: Promise<void>;
}

/** Agents and policies that other nodes changed. Apply the removals first. */
export interface ControlChanges {
  readonly removedAgents: readonly { readonly id: AgentId; readonly name: AgentName }[];
  readonly removedPolicies: readonly PolicyName[];
  readonly agents: readonly Authenticated<Agent>[];
  readonly policies: readonly Authenticated<Policy>[];
}

/** The state that nodes share, fixed for the duration of a transaction. */
export interface ClusterView {
  /** Null if the row was deleted. */
  readonly head: Head | null;
  /** The database clock, which all nodes use: milliseconds since 1970. */
  readonly now: number;
  /** As `readHighWaterTime`. */
  readonly highWaterTime: number;
  /** The last entry of the log; null if the log is empty. */
  readonly last: LastEntry | null;
  /** The MAC of entry `knownSeq`; null if that entry does not exist. */
  readonly knownLink: string | null;
  /** Changes after that epoch; null if it is so old that the control state must be reloaded. */
  readControl(afterEpoch: number): Promise<ControlChanges | null>;
}

/**
 * Transactions are serialized across all nodes: between `begin` and `commit` or `rollback` no other one is open. Within
 * a process the ledger opens one at a time.
 * `commit` is atomic, and the next transaction sees the batch. Reads return it only once it is `durable`; later writes
 * never become durable before it.
 */
export interface StoreTransaction {
  readonly found: LoadedFromStore;
  /** Null if this process is the only writer: nothing changes between its transactions, and it uses its own clock. */
  readonly shared: ClusterView | null;
  commit(batch: WriteSet): Promise<Committed>;
  rollback(): Promise<void>;
}

export interface LastEntry {
  readonly seq: number;
  readonly hmac: string;
  readonly timestamp: string;
}

/** Location of a log; plain data, so that it can be passed to a thread. */
export type LogLocation =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly address: PostgresAddress };

/** Reads committed entries over a separate connection. */
export interface LogReader {
  /** As the store's `readEntries`. */
  entries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]>;
  close(): void;
}

/** For a day, an ended session is told apart from an unknown one. */
export const ENDED_SESSION_RETENTION_MS = 24 * 3600 * 1000;
/** A bulk revocation must outlive every lease that it applies to. */
export const BULK_REVOCATION_TTL_MS = MAX_TTL_SECONDS * 1000 + ENDED_LEASE_RETENTION_MS;

export interface SweepResult {
  /** Rows. */
  readonly removed: number;
  readonly isDone: boolean;
}

export interface Store {
  /** Whether other processes may write to it: then the `shared` view of a transaction overrides cached state. */
  readonly isMultiWriter: boolean;

  /** The check value of the root key, or null for a new vault. */
  readRootKeyCheck(): Promise<string | null>;
  /** Creates the vault: its check value and its first head record. Only once. */
  initialise(keyCheck: string, head: Head, now: number): Promise<void>;

  /**
   * The head record (null if deleted), the last entry of the log (null if the log is empty), and the highest sequence
   * number of an entry, a lease or a bulk revocation (0 if none exists).
   */
  readHead(): Promise<{ head: Head | null; last: LastEntry | null; highestSeq: number }>;
  /** Whether no table has a row: a database with rows but without a vault record was tampered with. */
  isEmpty(): Promise<boolean>;
  readAgents(): Promise<Authenticated<Agent>[]>;
  readPolicies(): Promise<Authenticated<Policy>[]>;
  readSession(tokenHash: TokenHash): Promise<Authenticated<Session> | null>;

  /**
   * Whether a bulk revocation of all leases of the agent exists and its row does not. An altered row counts as a row.
   */
  isDeregistered(agentId: AgentId): Promise<boolean>;

  /** `knownSeq` is the last entry that this process knows; see `knownLink`. */
  begin(reads: readonly ReadSet[], knownSeq?: number): Promise<StoreTransaction>;
  /** The current epoch, without a transaction. Control state of that epoch is current. */
  readEpoch(): Promise<number>;

  /** Committed retrievals of the credential; 0 if it does not exist. */
  readAccessCount(credentialId: CredentialId): Promise<number>;

  // Steps: each takes a few milliseconds, however large the table is, and may return no rows.

  /** By path, from the cursor on; at most `limit` rows, at least 1. */
  listCredentials(
    query: CredentialListQuery,
    from: CredentialCursor,
    limit: number,
  ): Promise<ListStep<CountedCredential, CredentialCursor>>;
  /** Counts from the cursor on, and stops after `atMost`, which is at least 1. */
  countCredentials(
    query: CredentialListQuery,
    from: CredentialCursor,
    atMost: number,
  ): Promise<CountStep<CredentialCursor>>;
  /** Newest first, those before `beforeSeq`; at most `limit` rows, at least 1. */
  listLeases(query: LeaseQuery, beforeSeq: number, limit: number): Promise<ListStep<Lease, number>>;
  /** As `countCredentials`. */
  countLeases(query: LeaseQuery, beforeSeq: number, atMost: number): Promise<CountStep<number>>;
  /** Counts the leases that the committed bulk revocation ended: those active until then. The result never changes. */
  countRevokedBy(revoked: RevokedLeases, beforeSeq: number): Promise<CountStep<number>>;

  /** For `openLogReader` in a thread. */
  readonly logLocation: LogLocation;
  /** Entries with `fromSeq` ≤ seq ≤ `toSeq`, oldest first, at most `limit`. */
  readEntries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]>;
  /**
   * Whether an entry has a sequence number below 1. The service writes no such entry, and no read of a range shows it.
   */
  hasEntryBeforeFirst(): Promise<boolean>;
  /** A step, as above, through the range in that order. */
  matchEntries(filter: AuditFilter, fromSeq: number, toSeq: number, order: 'asc' | 'desc'): Promise<Matches>;
  /**
   * The sequence number of the first entry at or after the timestamp, or null. Logarithmic in the length of the log.
   */
  findSeqAt(timestamp: string): Promise<number | null>;

  /** The clock of the shared database, in milliseconds since 1970; null if the process uses its own clock. */
  readTime(): Promise<number | null>;
  /** The latest `now` of any `sweep`, or 0: what had ended by then must stay ended when a clock is set back. */
  readHighWaterTime(): Promise<number>;
  /**
   * Records `now` for `readHighWaterTime`, and deletes up to `limit` rows that ended long ago, within a few
   * milliseconds. `isDone`: no more rows are due. A lease that was revoked may stay until 7 days after its original
   * expiry. Writes no audit entry and runs outside transactions.
   */
  sweep(now: number, limit: number): Promise<SweepResult>;
  close(): Promise<void>;
}
