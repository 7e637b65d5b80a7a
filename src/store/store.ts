/**
 * The store's port, with its contract; `test/contract` holds every store to it. A store keeps rows and nothing else: it decides
 * nothing, opens no value and knows no key.
 *
 * Failures: a method rejects with a `StoreFailure` and with nothing else. `unavailable`: nothing was written, a later try may
 * succeed. `unknown`: a commit may or may not have happened; read the head to know. `broken`: the storage failed under a write
 * or a sync; what it holds can't be trusted to be durable, so that the process must stop (never retry a failed sync).
 */
import type { Agent, Session } from '../core/agent.ts';
import type { AuditEntry } from '../core/audit.ts';
import type { ReadSet, VersionInfo } from '../core/batch-state.ts';
import type { DirectChange } from '../core/change.ts';
import type { CountedCredential, Credential, CredentialVersion, Sealed } from '../core/credential.ts';
import type { IdempotencyRecord } from '../core/idempotency.ts';
import type { Lease } from '../core/lease.ts';
import type { AgentId, AgentName, ChallengeId, CredentialId, PolicyName, TokenHash } from '../core/names.ts';
import type { Policy } from '../core/policy.ts';
import type { PostgresAddress } from './postgres/address.ts';
import type {
  AuditFilter,
  CountStep,
  CredentialCursor,
  CredentialQuery,
  LeaseQuery,
  ListStep,
  Matches,
  RevokedLeases,
} from './queries.ts';

export type FailureKind = 'unavailable' | 'unknown' | 'broken';

export class StoreError extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreFailure';
    this.kind = kind;
  }
}

/** The failure of the store that an error is; null for any other error. */
export function storeErrorOf(error: unknown): StoreError | null {
  return error instanceof StoreError ? error : null;
}

/** A row with the MAC that the vault puts on it; the store only keeps it. */
export type Authenticated<T> = T & { readonly mac: string };

/** The log's head record. `epoch` counts the turns that changed the control state. */
export interface Head {
  readonly seq: number;
  readonly hmac: string;
  readonly mac: string;
  readonly epoch: number;
}

/** What a turn's keys found; what is not there is not in it. */
export interface LoadedFromStore {
  readonly credentials: readonly Authenticated<Credential>[];
  readonly versions: readonly { readonly credentialId: CredentialId; readonly version: CredentialVersion }[];
  readonly histories: readonly { readonly credentialId: CredentialId; readonly versions: readonly VersionInfo[] }[];
  readonly sessions: readonly Authenticated<Session>[];
  readonly leases: readonly Lease[];
  readonly spentChallenges: readonly ChallengeId[];
  readonly keptReplies: readonly Authenticated<IdempotencyRecord>[];
}

/** A change as it is stored: values sealed, rows that decide with their MACs. */
export type StoredChange =
  | DirectChange
  | { readonly kind: 'putAgent'; readonly agent: Authenticated<Agent> }
  | { readonly kind: 'putPolicy'; readonly policy: Authenticated<Policy> }
  | { readonly kind: 'putSession'; readonly session: Authenticated<Session> }
  /** Makes the credential, or replaces what is said of it. */
  | { readonly kind: 'putCredential'; readonly credential: Authenticated<Credential> }
  /** Takes the place of one with the same id. */
  | { readonly kind: 'keepReply'; readonly reply: Authenticated<IdempotencyRecord> }
  | {
      readonly kind: 'addVersion';
      readonly credentialId: CredentialId;
      readonly version: Omit<CredentialVersion, 'content'>;
      readonly sealed: Sealed;
    };

export interface WriteSet {
  /** In order, without gap, following the head that the turn was opened with. */
  readonly entries: readonly AuditEntry[];
  readonly head: Head;
  /** In the order of the decisions. */
  readonly changes: readonly StoredChange[];
  /**
   * Successful retrievals of each credential, each of which is an entry and a new lease: the store adds them up, when and where it
   * likes, with those of every other node, and tells exact counts to whoever asks.
   */
  readonly accesses: ReadonlyMap<CredentialId, number>;
}

/** `durable` resolves when the batch survives the loss of power, and rejects with `broken` and nothing else. */
export interface Committed {
  readonly durable: Promise<void>;
}

/** Agents and policies that other nodes changed: first what is gone, then what is there now. */
export interface ControlChanges {
  readonly removedAgents: readonly { readonly id: AgentId; readonly name: AgentName }[];
  readonly removedPolicies: readonly PolicyName[];
  readonly agents: readonly Authenticated<Agent>[];
  readonly policies: readonly Authenticated<Policy>[];
}

/** What several nodes share, as it stands for the length of a turn. */
export interface ClusterView {
  /** Null where it was removed. */
  readonly head: Head | null;
  /** The database's clock, which decides for all nodes: milliseconds since 1970. */
  readonly now: number;
  /** As `readSeenTime`. */
  readonly seenAt: number;
  /** The log's last entry; null where there is none. */
  readonly last: LastEntry | null;
  /** The link of the entry that the turn was opened with as the last one known; null where there is none of that ordinal. */
  readonly knownLink: string | null;
  /** What was changed by turns behind that epoch; null where that is so long ago that all must be read anew. */
  readControl(behindEpoch: number): Promise<ControlChanges | null>;
}

/**
 * One turn. Between `begin` and `commit` or `rollback` no other turn of any node is open.
 * `commit` writes all of the batch or nothing; the next turn sees it. It is told to nobody before it is `durable`, and what is
 * written later is never durable before it.
 */
export interface StoreTransaction {
  readonly found: LoadedFromStore;
  /** Null where the process has the store to itself: then nothing changes between its turns, and its own clock decides. */
  readonly shared: ClusterView | null;
  commit(batch: WriteSet): Promise<Committed>;
  rollback(): Promise<void>;
}

export interface LastEntry {
  readonly seq: number;
  readonly hmac: string;
  readonly timestamp: string;
}

/** Where a log lies; plain data, so that it can be handed to a thread. */
export type LogLocation =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly address: PostgresAddress };

/** Reads the log beside the store; sees what was committed. */
export interface LogReader {
  /** As the store's `readEntries`. */
  entries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]>;
  close(): void;
}

/** What a step of sweeping did. */
export interface SweepResult {
  /** Rows. */
  readonly removed: number;
  readonly isDone: boolean;
}

export interface Store {
  /** Whether other processes may write to it too: then what a turn says of itself goes before what is remembered. */
  readonly isMultiWriter: boolean;

  /** The check value of the root key, or null for a new vault. */
  readRootKeyCheck(): Promise<string | null>;
  /** Makes the vault: its check value and its first head record. Once. */
  initialise(keyCheck: string, head: Head, now: number): Promise<void>;

  /**
   * The head record (null where it was removed), the log's last row (null where there is none), and the highest ordinal that an
   * entry, a lease or a mark has (0 where there is none).
   */
  readHead(): Promise<{ head: Head | null; last: LastEntry | null; highestSeq: number }>;
  /** Whether there is no row of anything yet: a vault without its own record is new, or was tampered with. */
  isEmpty(): Promise<boolean>;
  readAgents(): Promise<Authenticated<Agent>[]>;
  readPolicies(): Promise<Authenticated<Policy>[]>;
  readSession(tokenHash: TokenHash): Promise<Authenticated<Session> | null>;

  /** Whether a mark ended everything that the agent held, and there is no row of it: altered or not, a row means that it is not. */
  isDeregistered(agentId: AgentId): Promise<boolean>;

  /** `knownSeq`: the last entry that this process knows of, to be looked for where others write too. */
  begin(keys: readonly ReadSet[], knownSeq?: number): Promise<StoreTransaction>;
  /** The epoch as it is now, without a turn. Control state of that epoch is what decides. */
  readEpoch(): Promise<number>;

  /** How often the credential was retrieved, as far as was committed; 0 where there is none. Soon after a start it may take a while. */
  readAccessCount(credentialId: CredentialId): Promise<number>;

  // Steps: each takes some milliseconds at most, however many rows there are, and may end before it found anything. Those that tell
  // counts of accesses may wait for them soon after a start.

  /** By path, from the place on; at most `limit` rows, which is at least 1. */
  listCredentials(
    query: CredentialQuery,
    from: CredentialCursor,
    limit: number,
  ): Promise<ListStep<CountedCredential, CredentialCursor>>;
  /** Counts from the place on, and stops behind the one that makes it `atMost`, which is at least 1. */
  countCredentials(
    query: CredentialQuery,
    from: CredentialCursor,
    atMost: number,
  ): Promise<CountStep<CredentialCursor>>;
  /** Newest first, of those older than `beforeSeq`; at most `limit` rows, which is at least 1. */
  listLeases(query: LeaseQuery, beforeSeq: number, limit: number): Promise<ListStep<Lease, number>>;
  /** As `countCredentials`. */
  countLeases(query: LeaseQuery, beforeSeq: number, atMost: number): Promise<CountStep<number>>;
  /** Counts those that the mark, which is committed, ended: they were active until then. It is the same at any later time. */
  countRevokedBy(marked: RevokedLeases, beforeSeq: number): Promise<CountStep<number>>;

  /** Where a thread of its own finds the log; see `openLogReader`. */
  readonly logLocation: LogLocation;
  /** Entries with `fromSeq` ≤ seq ≤ `toSeq`, oldest first, at most `limit`. */
  readEntries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]>;
  /**
   * Whether an entry has a sequence number below 1. The service writes no such entry, and no read of a range shows it.
   */
  hasEntryBeforeFirst(): Promise<boolean>;
  /** A step, as above, through the range: from its first ordinal up, or from its last one down. */
  matchEntries(filter: AuditFilter, fromSeq: number, toSeq: number, order: 'asc' | 'desc'): Promise<Matches>;
  /** The first ordinal whose entry's time is at or after the timestamp, or null. Costs the logarithm of the log. */
  findSeqAt(timestamp: string): Promise<number | null>;

  /** The clock that decides for all who share the store, in milliseconds since 1970; null where that is the process's own. */
  readTime(): Promise<number | null>;
  /** The latest time that `sweep` was told, or 0: what had ended by then must not come back with a clock that was set back. */
  readHighWaterTime(): Promise<number>;
  /**
   * Keeps `now` for `readSeenTime`, and removes up to `limit` rows of what ended long ago, in some milliseconds at most. `isDone`:
   * nothing more has to go at that time. A lease that ended before it was meant to may stay until 7 days behind that. Not recorded,
   * not part of a turn.
   */
  sweep(now: number, limit: number): Promise<SweepResult>;
  close(): Promise<void>;
}
