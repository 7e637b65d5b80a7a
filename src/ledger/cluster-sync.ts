/**
 * Synchronises a node with the others that share its store: at the start of a batch it applies their changes since the
 * node's last batch. INVARIANT: a node never continues a log from which an entry that it has acknowledged is missing.
 */
import { isHeadAuthentic } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { StoreError } from '../store/errors.ts';
import type { Store } from '../store/sql-store.ts';
import type { ClusterView, ControlChanges, Head, LastEntry } from '../store/store.ts';
import { AUTHENTICATED_ROWS } from './authenticated-rows.ts';
import { findLastTime, readControl, type VaultState } from './vault-state.ts';

/**
 * Checks that the log still contains the last entry that this node has seen. It does not if a lagging standby was
 * promoted, a backup was restored, or the log was altered. @throws StoreError
 */
export function assertNoRollback(
  { lastSeenEntry }: Pick<VaultState, 'lastSeenEntry'>,
  { knownLink, last }: ClusterView,
): void {
  if (lastSeenEntry === null || knownLink === lastSeenEntry.hmac) return;
  const { seq } = lastSeenEntry;
  const found = knownLink !== null ? 'contains a different one' : `ends at entry ${last?.seq ?? 0}`;
  throw new StoreError(
    'unavailable',
    `the log has lost entry ${seq}, which this node has seen: it ${found}. Was a lagging standby promoted, or a backup restored? The node decides nothing on this log. Restore the lost entries, or restart every node with --accept-rollback`,
  );
}

/**
 * Updates control state and the end of the log, under the batch's lock. Resolves to the agents that other nodes
 * deregistered; empty if too much changed for a list and the whole control state was read. @throws StoreError
 */
export async function applyRemoteChanges(
  memory: VaultState,
  shared: ClusterView,
  store: Store,
  keys: VaultKeys,
): Promise<ControlChanges['removedAgents']> {
  const { head, last } = shared;
  if (!isSame(head, memory.head)) {
    if (head === null || !isHeadAuthentic(keys.audit, head)) {
      throw new StoreError('unavailable', `the log's head record is ${head === null ? 'missing' : 'not authentic'}`);
    }
    memory.head = head;
    memory.tip = { seq: head.seq, hmac: head.hmac, epoch: memory.tip.epoch };
  }
  const epoch = head?.epoch ?? memory.tip.epoch;
  let removedAgents: ControlChanges['removedAgents'] = [];
  if (epoch !== memory.tip.epoch) {
    const changes = await shared.readControl(memory.tip.epoch);
    if (changes === null) memory.control = await readControl(store, keys, memory.warnings);
    else apply(memory, changes, keys);
    memory.tip = { ...memory.tip, epoch };
    removedAgents = changes?.removedAgents ?? [];
  }
  // An entry after the head record was added outside Leasehold and may disappear again, so it does not become the last
  // seen entry.
  if (last !== null && last.seq > memory.tip.seq) return removedAgents;
  if (last === null) memory.lastEntryAt = 0;
  else if (last.hmac !== memory.lastSeenEntry?.hmac) memory.lastEntryAt = await timeOf(last, shared, store, keys);
  memory.lastSeenEntry = last;
  return removedAgents;
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

/** A row without a valid MAC is not used, and neither is the row that it replaced. */
function apply({ control }: VaultState, changes: ControlChanges, keys: VaultKeys): void {
  for (const { id, name } of changes.removedAgents) control.apply({ kind: 'removeAgent', id, name });
  for (const name of changes.removedPolicies) control.apply({ kind: 'removePolicy', name });
  for (const agent of changes.agents) {
    if (AUTHENTICATED_ROWS.agent.isAuthentic(keys.row, agent)) control.apply({ kind: 'putAgent', agent });
  }
  for (const policy of changes.policies) {
    if (AUTHENTICATED_ROWS.policy.isAuthentic(keys.row, policy)) control.apply({ kind: 'putPolicy', policy });
    else control.apply({ kind: 'removePolicy', name: policy.name });
  }
}
