/** The data that crosses the storage port. */

import type { LoadedResource, VersionInfo } from '../core/batch-state.ts';
import type { DirectChange, Remove } from '../core/change.ts';
import type { ChallengeId, CredentialId } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import type { HeldResource, Resource, RowOf } from '../core/resources.ts';
import type { AuditEntry, HeadFields } from '../vault/audit/audit-entry.ts';
import type { StoredTreeNode } from '../vault/audit/proofs.ts';
import type { CredentialVersion, EncryptedValue } from '../vault/credentials/credential.ts';
import type { EncryptedKeyset, WrappedKeySlot } from '../vault/keys/keyset.ts';
import { ENDED_LEASE_RETENTION_MS, type Lease } from '../vault/leases/lease.ts';
import { MAX_TTL_SECONDS } from '../vault/policies/policy.ts';
import type { PostgresAddress } from './postgres/database-url.ts';

/** A row with the MAC that the vault computed; the store does not check it. */
export type Authenticated<T> = T & { readonly mac: string };

/** The head record of the audit log. */
export interface Head extends HeadFields {
  readonly mac: string;
}

/** The rows that the read sets of a transaction name; missing rows are omitted. */
export interface LoadedFromStore {
  readonly rows: { readonly [R in LoadedResource]: readonly Authenticated<RowOf[R]>[] };
  readonly versions: readonly { readonly credentialId: CredentialId; readonly version: CredentialVersion }[];
  readonly histories: readonly { readonly credentialId: CredentialId; readonly versions: readonly VersionInfo[] }[];
  readonly leases: readonly Lease[];
  readonly spentChallenges: readonly ChallengeId[];
  /** The state that the newest audit entry records for each subject of these rows. */
  readonly states: ReadonlyMap<string, string>;
  readonly keySlots: readonly Authenticated<WrappedKeySlot>[];
}

export type StoredPut = {
  [R in Resource]: { readonly kind: 'put'; readonly resource: R; readonly row: Authenticated<RowOf[R]> };
}[Resource];

/** A change as it is stored: values are encrypted, and rows that affect decisions have their MACs. */
export type StoredChange =
  | DirectChange
  | StoredPut
  | { readonly kind: 'putKeySlot'; readonly slot: Authenticated<WrappedKeySlot> }
  | { readonly kind: 'putKeyset'; readonly keyset: EncryptedKeyset }
  /** Replaces the encrypted value of the version, if it is still `from`. */
  | {
      readonly kind: 'reencrypt';
      readonly credentialId: CredentialId;
      readonly path: CredentialPath;
      readonly version: number;
      readonly from: EncryptedValue;
      readonly sealed: EncryptedValue;
    }
  /** Adds to the number of values encrypted with the data key. */
  | { readonly kind: 'countEncryptions'; readonly keyId: string; readonly seals: number }
  | {
      readonly kind: 'addVersion';
      readonly credentialId: CredentialId;
      readonly version: Omit<CredentialVersion, 'content'>;
      readonly sealed: EncryptedValue;
    };

export interface WriteSet {
  /** The entries in order, without gaps, following the head at the beginning of the transaction. */
  readonly entries: readonly AuditEntry[];
  readonly head: Head;
  /** The nodes of the tree that the entries complete. */
  readonly treeNodes: readonly StoredTreeNode[];
  /** The changes in the order in which they were decided. */
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

export type HeldRemove = Extract<Remove, { resource: HeldResource }>;
export type HeldPut = Extract<StoredPut, { resource: HeldResource }>;

/** Changes of other nodes to the rows that every node holds in memory. Apply the removals first. */
export interface ControlChanges {
  readonly removals: readonly HeldRemove[];
  readonly puts: readonly HeldPut[];
  /** The state that the newest audit entry records for each subject of these changes. */
  readonly states: ReadonlyMap<string, string>;
}

/** The state that nodes share, as of one moment. */
export interface ClusterState {
  /** Null if the row was deleted. */
  readonly head: Head | null;
  /** The database clock, which all nodes use: milliseconds since 1970. */
  readonly now: number;
  /** The latest time that the vault has recorded. */
  readonly highWaterTime: number;
  /** The last entry of the audit log; null if that is empty. */
  readonly last: LastEntry | null;
  /** The version of the keyset; 0 if the row does not exist. */
  readonly keysetVersion: number;
}

/** The shared state during a transaction, in which it does not change. */
export interface ClusterView extends ClusterState {
  /** Changes after that epoch; null if it is so old that the control state must be reloaded. */
  readControl(afterEpoch: number): Promise<ControlChanges | null>;
}

/**
 * Transactions are serialised across all nodes: between `begin` and `commit` or `rollback`, no other transaction is
 * open. Within a process, the ledger opens one at a time.
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

/** Rows as of one moment, outside transactions. */
export interface LoadedView {
  readonly found: LoadedFromStore;
  /** The shared state as of that moment; null if this process is the only writer. */
  readonly shared: ClusterState | null;
  /** Resolves when the rows are durable. @throws StoreError `fatal` */
  readonly durable: Promise<void>;
}

export interface LastEntry {
  readonly seq: number;
  readonly hmac: string;
  readonly timestamp: string;
}

/** An audit entry that this process has read or written. Every later state of the audit log must contain it. */
export type SeenEntry = Pick<LastEntry, 'seq' | 'hmac'>;

/** Location of a log; plain data, so that it can be passed to a thread. */
export type LogLocation =
  | { readonly kind: 'sqlite'; readonly file: string }
  /** One host, whose audit log must contain the entry unless it is null. */
  | { readonly kind: 'postgres'; readonly address: PostgresAddress; readonly seen: SeenEntry | null };

/** For a day, the server tells an ended session apart from an unknown one. */
export const ENDED_SESSION_RETENTION_MS = 24 * 3600 * 1000;
/** Ended approvals are listed for a week. */
export const ENDED_APPROVAL_RETENTION_MS = 7 * 24 * 3600 * 1000;
/** A bulk revocation must outlive every lease that it applies to. */
export const BULK_REVOCATION_TTL_MS = MAX_TTL_SECONDS * 1000 + ENDED_LEASE_RETENTION_MS;

export interface SweepResult {
  readonly removed: number;
  readonly isDone: boolean;
}
