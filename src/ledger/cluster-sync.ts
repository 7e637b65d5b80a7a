/**
 * Where several nodes share the store: taking over, at the beginning of a turn, what the others did since this node's last one.
 * INVARIANT: what this node has once told somebody is never missing from the log that it goes on with.
 */
import { isHeadAuthentic } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { StoreError } from '../store/errors.ts';
import type { ClusterView, ControlChanges, Head, LastEntry, Store } from '../store/store.ts';
import { isAgentAuthentic, isPolicyAuthentic } from './authenticated-rows.ts';
import { findLastTime, readControl, type VaultState } from './vault-state.ts';

/**
 * Whether the log still holds the last entry that this node knows of. A standby that took over too early does not, nor does a
 * backup, nor a log that was altered. @throws StoreFailure
 */
export function assertNoRollback(
  { lastSeenEntry }: Pick<VaultState, 'lastSeenEntry'>,
  { knownLink, last }: ClusterView,
): void {
  if (lastSeenEntry === null || knownLink === lastSeenEntry.hmac) return;
  const { seq } = lastSeenEntry;
  const found = knownLink !== null ? 'holds another one' : `ends at entry ${last?.seq ?? 0}`;
  throw new StoreError(
    'unavailable',
    `the log has lost entry ${seq}, which this node has seen: it ${found}. Was a standby promoted that lagged behind, or a backup restored? Nothing is decided on such a log; bring the lost entries back, or start every node anew with --accept-rollback`,
  );
}

/**
 * Control state and the end of the log as they stand under the turn's lock. Resolves to the agents that others deregistered, as far
 * as they are known one by one. @throws StoreFailure
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
      throw new StoreError('unavailable', `the log's head record is ${head === null ? 'gone' : 'not authentic'}`);
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
  // One beyond the head was told to nobody: somebody put it there, and may take it away again.
  if (last !== null && last.seq > memory.tip.seq) return removedAgents;
  if (last === null) memory.lastEntryAt = 0;
  else if (last.hmac !== memory.lastSeenEntry?.hmac) memory.lastEntryAt = await timeOf(last, shared, store, keys);
  memory.lastSeenEntry = last;
  return removedAgents;
}

/** WHY the MAC is checked only for a time ahead of the database's clock: an earlier one, true or not, moves no clock. */
async function timeOf(last: LastEntry, { now }: ClusterView, store: Store, keys: VaultKeys): Promise<number> {
  const time = Date.parse(last.timestamp) || 0;
  return time <= now ? time : findLastTime(store, last.seq, keys, []);
}

function isSame(a: Head | null, b: Head | null): boolean {
  return a === b || (a !== null && b !== null && a.seq === b.seq && a.hmac === b.hmac && a.mac === b.mac);
}

/** Rows that were altered outside are not used, nor is what they replaced. */
function apply({ control }: VaultState, changes: ControlChanges, keys: VaultKeys): void {
  for (const { id, name } of changes.removedAgents) control.apply({ kind: 'removeAgent', id, name });
  for (const name of changes.removedPolicies) control.apply({ kind: 'removePolicy', name });
  for (const agent of changes.agents) {
    if (isAgentAuthentic(keys.row, agent)) control.apply({ kind: 'putAgent', agent });
  }
  for (const policy of changes.policies) {
    if (isPolicyAuthentic(keys.row, policy)) control.apply({ kind: 'putPolicy', policy });
    else control.apply({ kind: 'removePolicy', name: policy.name });
  }
}
