/**
 * Runs batches over the store, one at a time: loads rows, decides, commits, and updates memory.
 * INVARIANT: memory contains only what the store contains. After a failed batch it is read again before the next one.
 */

import { BatchState, LoadedRows, type ReadSet, type VaultSettings } from '../core/batch-state.ts';
import type { EntryId } from '../core/names.ts';
import type { Operation } from '../core/operation.ts';
import { isAsRecorded, type KeyedResource } from '../core/resources.ts';
import { headMac } from '../crypto/chain.ts';
import { newId } from '../crypto/primitives.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { StoreError } from '../store/errors.ts';
import type { Store } from '../store/port.ts';
import type {
  ClusterState,
  ControlChanges,
  LoadedFromStore,
  StoredChange,
  StoreTransaction,
} from '../store/stored-data.ts';
import type { KeySlot } from '../vault/keys/keyset.ts';
import { deleteExpired } from '../vault/policies/endpoints.ts';
import type { Policy } from '../vault/policies/policy.ts';
import type { Session } from '../vault/sessions/session.ts';
import { isAuthentic } from './authenticated-rows.ts';
import type { DenialBudget } from './budgets.ts';
import { type Clock, DatabaseClock } from './clock.ts';
import { applyRemoteChanges, isCurrent, refreshKeys } from './cluster-sync.ts';
import { type DecidedBatch, decideBatch, type OperationResult } from './decide-batch.ts';
import type { LedgerMeasures } from './ledger-measures.ts';
import { readVaultState, type VaultState } from './vault-state.ts';

export interface BatchParts {
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
  readonly settings: VaultSettings;
  readonly memory: VaultState;
  readonly denials: DenialBudget;
  /** Decides, but writes nothing: reads are not recorded, and a change is rejected. */
  readonly isReadOnly?: boolean;
  /** Called with the agents, operators and policies that other nodes removed. */
  readonly onRemoved: (removals: ControlChanges['removals']) => void;
  /** Called with the changes of each batch that was written, before it is durable. */
  readonly onCommitted: (changes: readonly StoredChange[]) => void;
}

/** A committed batch. The next batch builds on it, but no response is sent before it is durable. */
export interface CommittedBatch {
  readonly results: readonly OperationResult[];
  /** Resolves when the commit is on disk; null if nothing was written. */
  readonly durable: Promise<void> | null;
}

export interface DecidedReads {
  readonly replies: ReadonlyMap<Operation<unknown>, unknown>;
  /** Resolves when everything is on disk that the operations have seen. */
  readonly durable: Promise<unknown>;
}

export class BatchRunner {
  readonly #parts: BatchParts;
  readonly #measures: LedgerMeasures;
  #memory: VaultState;
  /** Whether agents, operators and policies in memory include changes that are not written. */
  #isAhead = false;
  /** Resolves when the last batch that was written is durable. */
  #durable: Promise<void> = Promise.resolve();

  constructor(parts: BatchParts, measures: LedgerMeasures) {
    this.#parts = parts;
    this.#measures = measures;
    this.#memory = parts.memory;
    parts.store.see(parts.memory.lastSeenEntry);
  }

  get memory(): VaultState {
    return this.#memory;
  }

  /** Resolves when the batch is written. After any error the caller must run `recover`. @throws StoreError */
  async run(operations: readonly Operation<unknown>[]): Promise<CommittedBatch> {
    const { store, keys } = this.#parts;
    const startedAt = performance.now();
    this.#measures.batchSizes.observe(operations.length);
    const loaded = new LoadedRows();
    const reads = operations.map((operation) => readSetOf(this.#memory, operation, loaded, store.isMultiWriter));
    const transaction = await store.begin(reads);
    let decided: DecidedBatch;
    let now: number;
    try {
      now = await this.#begin(transaction);
      populate(keys, this.#memory, loaded, transaction.found);
      // A decision that throws leaves its changes.
      this.#isAhead = true;
      decided = this.#decide(operations, loaded, now);
      this.#isAhead = decided.head.epoch !== this.#memory.tip.epoch;
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    const { results, entries, head, treeNodes, changes, accesses } = decided;
    const isReadOnly = this.#parts.isReadOnly === true;
    if (isReadOnly || (entries.length === 0 && changes.length === 0)) {
      await transaction.rollback();
      if (changes.length > 0) throw new StoreError('unavailable', 'the audit log is read-only');
      this.#measures.batches.add('empty');
      return { results, durable: null };
    }
    const { durable } = await transaction.commit({
      entries,
      head,
      treeNodes: [...this.#memory.unstoredNodes, ...treeNodes],
      changes,
      accesses,
    });
    this.#durable = durable;
    this.#advanceState(decided, now);
    const writtenAt = performance.now();
    this.#measures.writeSeconds.observe((writtenAt - startedAt) / 1000);
    return { results, durable: durable.then(() => this.#countDurable(writtenAt)) };
  }

  /** Applies the changes that other nodes committed. Resolves to the time of the batch. */
  async #begin({ shared }: StoreTransaction): Promise<number> {
    if (shared !== null) {
      const { store, keys } = this.#parts;
      this.#parts.onRemoved(await applyRemoteChanges(this.#memory, shared, store, keys));
      store.see(this.#memory.lastSeenEntry);
    }
    return this.#timeOf(shared);
  }

  #timeOf(shared: ClusterState | null): number {
    const { clock } = this.#parts;
    const notBefore = Math.max(shared?.highWaterTime ?? 0, this.#memory.lastEntryAt);
    if (shared !== null && clock instanceof DatabaseClock) {
      clock.sync(shared.now);
      clock.advance(notBefore);
    }
    return Math.max(clock.now(), notBefore);
  }

  #decide(operations: readonly Operation<unknown>[], loaded: LoadedRows, now: number): DecidedBatch {
    const { keys, settings, denials } = this.#parts;
    const { control, tip, digest } = this.#memory;
    const state = new BatchState(control, loaded, settings);
    return decideBatch(
      operations,
      state,
      tip,
      digest,
      now,
      this.#expired(now).map(deleteExpired),
      keys,
      denials,
      newId,
    );
  }

  /** WHY none in recovery: nothing can be written, and nothing is granted. */
  #expired(now: number): readonly Policy[] {
    return this.#parts.isReadOnly === true ? [] : this.#memory.control.policies.expired(now);
  }

  #countDurable(writtenAt: number): void {
    this.#measures.batches.add('committed');
    this.#measures.durableSeconds.observe((performance.now() - writtenAt) / 1000);
  }

  #advanceState({ head, tree, entries, changes, keys }: DecidedBatch, now: number): void {
    if (keys.version !== this.#parts.keys.version) this.#parts.keys.replaceWith(keys);
    this.#isAhead = false;
    const memory = this.#memory;
    memory.tip = { ...head, tree };
    memory.head = head;
    memory.unstoredNodes = [];
    const last = entries.at(-1);
    if (last !== undefined) {
      memory.lastSeenEntry = last;
      memory.lastEntryAt = now;
      this.#parts.store.see(last);
    }
    for (const change of changes) {
      if (change.kind === 'remove' && change.resource === 'session') memory.sessions.drop(change.row.tokenHash);
    }
    this.#measures.committed(entries, changes, now);
    this.#parts.onCommitted(changes);
  }

  /**
   * Decides operations on memory and on stored rows, without the lock of a batch. An operation has no reply if its
   * outcome is a rejection, is recorded or changes something. None has one if memory lacks a commit before this call,
   * or is ahead of the store: then a batch decides. @throws StoreError
   */
  async read(operations: readonly Operation<unknown>[]): Promise<DecidedReads> {
    const { store, keys, settings } = this.#parts;
    const loaded = new LoadedRows();
    const reads = operations.map((operation) => readSetOf(this.#memory, operation, loaded, store.isMultiWriter));
    const { found, shared, durable } = await store.load(reads);
    const replies = new Map<Operation<unknown>, unknown>();
    const memory = this.#memory;
    // The control state in memory includes the last batch that was written.
    const decided = { replies, durable: Promise.all([durable, this.#durable]) };
    if (this.#isAhead || (shared !== null && !isCurrent(memory, shared, keys))) return decided;
    if (shared !== null && operations.some(({ auth }) => auth.kind !== 'service')) this.#see(shared);
    const now = this.#timeOf(shared);
    // A batch deletes the policies that have expired.
    if (this.#expired(now).length > 0) return decided;
    populate(keys, memory, loaded, found);
    const state = new BatchState(memory.control, loaded, settings);
    const moment = { now, seq: memory.tip.seq + 1, entryId: newId() as EntryId, newId };
    for (const operation of operations) {
      const { response, entry, changes } = operation.decide(state, moment);
      if ('reply' in response && entry === null && changes.length === 0) replies.set(operation, response.reply);
    }
    return decided;
  }

  /**
   * Reads memory again, which drops the changes of a failed batch and adds those of a commit whose success was not
   * reported. Then writes the unchanged head record, which shows that the store commits again. @throws StoreError
   */
  async recover(): Promise<void> {
    const { store, keys } = this.#parts;
    await refreshKeys(store, keys);
    const memory = await readVaultState(store, keys);
    // A node that has started without proof continues without it; no other one begins to.
    if (memory.unproven !== null && this.#memory.unproven === null) {
      throw new StoreError('unavailable', memory.unproven);
    }
    const transaction = await store.begin([]);
    try {
      if (transaction.shared !== null) {
        this.#parts.onRemoved(await applyRemoteChanges(memory, transaction.shared, store, keys));
      }
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    if (this.#parts.isReadOnly === true) {
      await transaction.rollback();
      this.#replaceMemory(memory);
      return;
    }
    const fields = { ...memory.tip, tree: memory.tip.tree.toString() };
    const head = { ...fields, mac: headMac(keys.auditAt(fields.seq), fields) };
    const { durable } = await transaction.commit({
      entries: [],
      head,
      treeNodes: memory.unstoredNodes,
      changes: [],
      accesses: new Map(),
    });
    await durable;
    memory.head = head;
    memory.unstoredNodes = [];
    this.#replaceMemory(memory);
  }

  /**
   * The audit log must contain the last entry from now on, because the caller of a read may be told of it. An entry
   * after the head record was added outside Leasehold and may disappear again.
   */
  #see({ head, last }: ClusterState): void {
    if (head === null || last === null || last.seq > head.seq) return;
    if (last.seq <= (this.#memory.lastSeenEntry?.seq ?? 0)) return;
    this.#memory.lastSeenEntry = last;
    this.#parts.store.see(last);
  }

  #replaceMemory(memory: VaultState): void {
    this.#memory = memory;
    this.#isAhead = false;
  }
}

// Loads the rows that a batch decides on, from the session cache and from the store.

/** The rows to load for the operation. A cached session is not loaded again, unless another node may have ended it. */
function readSetOf(
  { sessions }: VaultState,
  { reads }: Operation<unknown>,
  loaded: LoadedRows,
  isMultiWriter: boolean,
): ReadSet {
  const { session: tokenHash, ...others } = reads;
  if (tokenHash === undefined || isMultiWriter) return reads;
  const session = sessions.get(tokenHash);
  if (session === null) return reads;
  loaded.rows.session.set(tokenHash, session);
  return others;
}

/**
 * Adds the rows that the store found. A row counts if its MAC is valid and, except for idempotency records, is the one
 * that the newest entry about the row records. Other rows are skipped; such credentials are added to `altered`.
 */
function populate(
  keys: VaultKeys,
  { sessions, authentic }: VaultState,
  loaded: LoadedRows,
  found: LoadedFromStore,
): void {
  const { rows, states } = found;
  for (const session of rows.session) {
    if (!isAsRecorded('session', session, states)) continue;
    // A session that equals the cached one was authentic when it was cached.
    const isKnown = isSameSession(sessions.get(session.tokenHash), session);
    if (isKnown || isAuthentic(keys.row, 'session', session)) loaded.rows.session.set(session.tokenHash, session);
  }
  for (const credential of rows.credential) {
    loaded.rows.credential.set(credential.path, credential);
    if (authentic.has(credential)) continue;
    const isGood = isAsRecorded('credential', credential, states) && isAuthentic(keys.row, 'credential', credential);
    if (isGood) authentic.add(credential);
    else loaded.altered.add(credential.path);
  }
  for (const { credentialId, version } of found.versions) loaded.putVersion(credentialId, version);
  for (const { credentialId, versions } of found.histories) loaded.histories.set(credentialId, [...versions]);
  const admit = (resource: Exclude<KeyedResource, 'session'>): void => {
    for (const row of rows[resource]) {
      if (isAsRecorded(resource, row, states) && isAuthentic(keys.row, resource, row)) loaded.put(resource, row);
    }
  };
  admit('targets');
  admit('approval');
  admit('reply');
  for (const slot of found.keySlots) if (keys.isSlotAuthentic(slot)) loaded.keySlots.set(slot.id, toKeySlot(slot));
  loaded.keySlotsInForce = keys.slotIds;
  for (const lease of found.leases) loaded.leases.set(lease.id, lease);
  for (const id of found.spentChallenges) loaded.spentChallenges.add(id);
}

function toKeySlot({ id, name, kind, parameters, publicKey, createdAt }: KeySlot): KeySlot {
  return { id, name, kind, parameters, publicKey, createdAt };
}

function isSameSession(known: Session | null, session: Session): boolean {
  return (
    known !== null &&
    known.agentId === session.agentId &&
    known.issuedAt === session.issuedAt &&
    known.expiresAt === session.expiresAt
  );
}
