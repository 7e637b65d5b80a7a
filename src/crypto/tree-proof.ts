/**
 * Inclusion and consistency proofs: which nodes they consist of, and how they are verified.
 * SOURCE: RFC 6962, sections 2.1.1 and 2.1.2; RFC 9162, sections 2.1.3.2 and 2.1.4.2 (verification).
 */
import { foldRight, leafHash, nodeHash, peakLevels, type TreeHash, type TreeNode } from './tree.ts';

/** The leaves from `from` to before `to`. */
export interface LeafRange {
  readonly from: number;
  readonly to: number;
}

/** The largest power of two below `size`, which is at least 2. */
function splitPoint(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

/** The subtrees whose roots prove that leaf `index` is in a tree of `size` leaves, from the leaf up to the root. */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  const ranges: LeafRange[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const middle = from + splitPoint(to - from);
    if (index < middle) {
      ranges.unshift({ from: middle, to });
      to = middle;
    } else {
      ranges.unshift({ from, to: middle });
      from = middle;
    }
  }
  return ranges;
}

/** The subtrees whose roots prove that a tree of `size` leaves extends the one of its first `oldSize` leaves. */
export function consistencyRanges(oldSize: number, size: number): LeafRange[] {
  if (oldSize === 0 || oldSize === size) return [];
  const ranges: LeafRange[] = [];
  let [from, to] = [0, size];
  // Whether the subtree begins at the first leaf, so that the verifier knows its root if all of it is old.
  let isOldRoot = true;
  while (to !== oldSize) {
    const middle = from + splitPoint(to - from);
    if (oldSize <= middle) {
      ranges.unshift({ from: middle, to });
      to = middle;
    } else {
      ranges.unshift({ from, to: middle });
      from = middle;
      isOldRoot = false;
    }
  }
  return isOldRoot ? ranges : [{ from, to }, ...ranges];
}

/** The complete subtrees of which a range that begins at a multiple of its largest one consists, from the left. */
export function completeSubtrees({ from, to }: LeafRange): Omit<TreeNode, 'hash'>[] {
  let next = from;
  return peakLevels(to - from).map((level) => {
    const node = { level, position: next / 2 ** level };
    next += 2 ** level;
    return node;
  });
}

/** The root that an inclusion proof of a leaf yields; null if the proof has the wrong length for the tree. */
export function rootOfInclusion(mac: string, index: number, size: number, proof: readonly TreeHash[]): TreeHash | null {
  const ranges = index < size ? inclusionRanges(index, size) : null;
  if (ranges?.length !== proof.length) return null;
  return ranges.reduce(
    (root, range, at) => (range.from > index ? nodeHash(root, proof[at] ?? '') : nodeHash(proof[at] ?? '', root)),
    leafHash(mac),
  );
}

/** A tree's size and root. */
export interface TreeHead {
  readonly size: number;
  readonly root: TreeHash;
}

/** Whether the proof shows that the later tree extends the earlier one. The empty tree is extended by every tree. */
export function isConsistent(earlier: TreeHead, later: TreeHead, proof: readonly TreeHash[]): boolean {
  if (earlier.size > later.size) return false;
  if (earlier.size === later.size) return proof.length === 0 && earlier.root === later.root;
  if (earlier.size === 0) return proof.length === 0 && earlier.root === foldRight([]);
  const ranges = consistencyRanges(earlier.size, later.size);
  if (ranges.length !== proof.length) return false;
  const parts = ranges.map(({ from }, at) => ({ from, hash: proof[at] ?? '' }));
  // Without a proof hash for it, the old tree is a complete subtree, whose root is known.
  const isOldRoot = ranges.every(({ from }) => from >= earlier.size);
  const first = isOldRoot ? { from: 0, hash: earlier.root } : parts.shift();
  if (first === undefined) return false;
  let [oldRoot, newRoot] = [first.hash, first.hash];
  for (const { from, hash } of parts) {
    if (from >= earlier.size) newRoot = nodeHash(newRoot, hash);
    else {
      oldRoot = nodeHash(hash, oldRoot);
      newRoot = nodeHash(hash, newRoot);
    }
  }
  return oldRoot === earlier.root && newRoot === later.root;
}
