/**
 * Synchronises a node with the others that share its store: at the start of a batch it applies their changes since the
 * node's last batch. The store has checked that the audit log has the last entry that the node has seen.
 */

import { removeRow } from '../core/change.ts';
import { isAsRecorded } from '../core/resources.ts';
import { isHeadInForce } from '../crypto/chain.ts';
import { CompactRange } from '../crypto/tree.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { StoreError } from '../store/errors.ts';
import type { Store } from '../store/port.ts';
import type { ClusterState, ClusterView, ControlChanges, Head, HeldRemove, LastEntry } from '../store/stored-data.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import { REMOVED } from '../vault/audit/audit-entry.ts';
import { isAuthentic } from './authenticated-rows.ts';
import { readControl } from './read-control.ts';
import { findLastTime, type VaultState } from './vault-state.ts';

/**
 * Updates control state and the end of the audit log, under the batch's lock. Resolves to what other nodes removed;
 * empty if too much changed for a list and the whole control state was read. @throws StoreError
 */
export async function applyRemoteChanges(
  memory: VaultState,
  shared: ClusterView,
  store: Store,
  keys: VaultKeys,
): Promise<ControlChanges['removals']> {
  const { head, last } = shared;
  // ORDER: before anything is checked, because it may be under a new key.
  if (shared.keysetVersion !== keys.version) await refreshKeys(store, keys);
  if (!isSame(head, memory.head)) {
    if (head === null || !isHeadInForce(keys, head)) {
      throw new StoreError(
        'unavailable',
        `the audit log's head record is ${head === null ? 'missing' : 'not authentic'}`,
      );
    }
    memory.head = head;
    const tree = CompactRange.parse(head.tree, head.seq);
    if (tree === null) throw new StoreError('unavailable', "the audit log's head record has no valid tree");
    memory.tip = { seq: head.seq, hmac: head.hmac, epoch: memory.tip.epoch, control: head.control, tree };
  }
  const epoch = head?.epoch ?? memory.tip.epoch;
  let removals: ControlChanges['removals'] = [];
  if (epoch !== memory.tip.epoch && memory.unproven !== null) memory.tip = { ...memory.tip, epoch };
  if (epoch !== memory.tip.epoch) {
    const changes = await shared.readControl(memory.tip.epoch);
    if (changes !== null) apply(memory, changes, keys);
    // A removal or a row that another node recorded may have been removed outside, so everything is read again.
    if (changes === null || memory.tip.control !== memory.digest.toString()) await reloadControl(memory, store, keys);
    memory.tip = { ...memory.tip, epoch };
    removals = changes?.removals ?? [];
  }
  // An entry after the head record was added outside Leasehold and may disappear again, so it does not become the last
  // seen entry.
  if (last !== null && last.seq > memory.tip.seq) return removals;
  if (last === null) memory.lastEntryAt = 0;
  else if (last.hmac !== memory.lastSeenEntry?.hmac) memory.lastEntryAt = await timeOf(last, shared, store, keys);
  memory.lastSeenEntry = last;
  return removals;
}

/**
 * Whether memory includes every change of other nodes to agents, operators, policies and keys. False for a state
 * that only a batch can judge. A time ahead of the database's clock counts if the MAC of its entry is valid.
 */
export function isCurrent({ head: known, tip, lastSeenEntry }: VaultState, shared: ClusterState, keys: VaultKeys) {
  const { head, last, now, keysetVersion } = shared;
  if (head === null || head.epoch !== tip.epoch || keysetVersion !== keys.version) return false;
  if (!isSame(head, known) && !isHeadInForce(keys, head)) return false;
  return last === null || last.hmac === lastSeenEntry?.hmac || Date.parse(last.timestamp) <= now;
}

/** @throws StoreError if the audit log and the rows were altered together */
async function reloadControl(memory: VaultState, store: Store, keys: VaultKeys): Promise<void> {
  const recorded = { kind: 'recorded', digest: memory.tip.control } as const;
  const reading = await readControl(store, keys, recorded, memory.warnings);
  if (reading.unproven !== null) throw new StoreError('unavailable', reading.unproven);
  memory.control = reading.control;
  memory.digest = reading.digest;
}

/** Takes over the keyset as it is stored. @throws StoreError if this node cannot open it */
export async function refreshKeys(store: Store, keys: VaultKeys): Promise<void> {
  if (keys.refresh(await store.run(readStoredKeys(), 'urgent'))) return;
  throw new StoreError(
    'unavailable',
    'the keyset in the database cannot be opened: it was altered or rolled back, or the key slot with which this node started was removed. Restart the node with a slot that exists',
  );
}

/**
 * WHY the MAC is checked only if the time is ahead of the database's clock: an earlier time, even a forged one, moves
 * no clock.
 */
async function timeOf(last: LastEntry, { now }: ClusterView, store: Store, keys: VaultKeys): Promise<number> {
  const time = Date.parse(last.timestamp) || 0;
  return time <= now ? time : findLastTime(store, last.seq, keys, []);
}

function isSame(a: Head | null, b: Head | null): boolean {
  return a === b || (a !== null && b !== null && a.seq === b.seq && a.hmac === b.hmac && a.mac === b.mac);
}

/**
 * A row that does not match the audit log is not used, and neither is the row that it replaced. The digest follows the
 * log.
 */
function apply({ control, digest }: VaultState, changes: ControlChanges, keys: VaultKeys): void {
  const { states } = changes;
  for (const [subject, state] of states) {
    if (state === REMOVED) digest.delete(subject);
    else digest.put(subject, state);
  }
  for (const removal of changes.removals) control.apply(removal);
  for (const put of changes.puts) {
    const { resource, row } = put;
    if (resource === 'agent') {
      const former = control.agentByName(row.name);
      if (former !== null) control.apply(removeRow('agent', former) as HeldRemove);
    }
    if (isAsRecorded(resource, row, states) && isAuthentic(keys.row, resource, row)) control.apply(put);
    else control.apply(removeRow(resource, row) as HeldRemove);
  }
}
