/**
 * The Merkle tree of a log at its start: restored from the head record, and computed from the entries where the record
 * is damaged.
 */

import { GENESIS_MAC } from '../core/audit.ts';
import { CompactRange, encodeHash, type TreeNode } from '../crypto/tree.ts';
import { readMacs } from '../store/audit-log.ts';
import { StoreError } from '../store/errors.ts';
import type { Store } from '../store/port.ts';
import type { StoredTreeNode } from '../store/store.ts';

export interface TreeState {
  readonly tree: CompactRange;
  /** Nodes that the store may lack. */
  readonly unstoredNodes: readonly StoredTreeNode[];
}

/** The tree of the head record: the compact range of the first `size` leaves. Null if the record is damaged. */
export interface RecordedTree {
  readonly text: string | null;
  readonly size: number;
}

const STEP_ENTRIES = 10_000;
/** A second of work. WHY bounded: a number that was altered outside could be any. */
const MAX_GAP = 1_000_000;

/** The tree with a leaf for each sequence number up to `seq`. A number without an entry has a leaf of zero bytes. */
export async function readTree(store: Pick<Store, 'run'>, recorded: RecordedTree, seq: number): Promise<TreeState> {
  const restored = recorded.text === null ? null : CompactRange.parse(recorded.text, recorded.size);
  const completed: TreeNode[] = [];
  const tree = restored ?? (await computeTree(store, seq, completed));
  assertGap(tree.size, seq);
  while (tree.size < seq) tree.append(GENESIS_MAC, completed);
  return { tree, unstoredNodes: toStoredNodes(completed) };
}

/** @throws StoreError */
function assertGap(end: number, seq: number): void {
  if (seq - end <= MAX_GAP) return;
  throw new StoreError(
    'unavailable',
    `a row names entry ${seq}, but the log ends at ${end}: the database was altered outside. Restore a backup`,
  );
}

async function computeTree(store: Pick<Store, 'run'>, seq: number, completed: TreeNode[]): Promise<CompactRange> {
  const tree = CompactRange.empty();
  while (tree.size < seq) {
    const macs = await store.run(readMacs(tree.size + 1, seq, STEP_ENTRIES));
    if (macs.length === 0) break;
    for (const entry of macs) {
      assertGap(tree.size, entry.seq);
      while (tree.size < entry.seq - 1) tree.append(GENESIS_MAC, completed);
      tree.append(entry.hmac, completed);
    }
  }
  return tree;
}

export function toStoredNodes(nodes: readonly TreeNode[]): StoredTreeNode[] {
  return nodes.map(({ level, position, hash }) => ({ level, position, hash: encodeHash(hash) }));
}
