/**
 * Reads the audit log's Merkle tree: roots and proofs at any size that the audit log has reached. A complete subtree of
 * 2^8, 2^16 … leaves is read from the store; the nodes below it are computed from at most 256 hashes of the level
 * below.
 */

import {
  completeSubtrees,
  consistencyRanges,
  decodeHash,
  foldRight,
  inclusionRanges,
  type LeafRange,
  leafHash,
  nodeHash,
  STORED_LEVELS,
  type TreeHash,
  type TreeNode,
} from '../../crypto/tree.ts';
import { readMacs, readTreeNodes } from '../../store/audit-log.ts';
import type { Store } from '../../store/port.ts';

export type TreeStore = Pick<Store, 'run'>;

/** The audit log or its stored nodes lack something that the tree needs: they were altered. */
export class IncompleteTreeError extends Error {}

/** Nodes of one stored level that are kept while a proof is computed. */
const TILE_NODES = 2 ** STORED_LEVELS;

export class LogTree {
  readonly #store: TreeStore;
  /** The hashes of a tile: 256 neighbours of a stored level, or fewer at the end of the audit log. */
  readonly #tiles = new Map<string, Promise<readonly TreeHash[]>>();
  readonly #size: number;

  constructor(store: TreeStore, size: number) {
    this.#store = store;
    this.#size = size;
  }

  /** The root of the tree, or of its first `size` entries. @throws IncompleteTreeError, StoreError */
  root(size = this.#size): Promise<TreeHash> {
    return this.#rootOf({ from: 0, to: size });
  }

  /** The proof that the entry `seq` is in the tree. @throws IncompleteTreeError, StoreError */
  inclusionProof(seq: number): Promise<TreeHash[]> {
    return this.#rootsOf(inclusionRanges(seq - 1, this.#size));
  }

  /** The proof that the tree extends the one of the first `oldSize` entries. @throws IncompleteTreeError, StoreError */
  consistencyProof(oldSize: number): Promise<TreeHash[]> {
    return this.#rootsOf(consistencyRanges(oldSize, this.#size));
  }

  /** WHY all together: PostgreSQL answers over several connections; a proof takes tiles of three levels and an edge. */
  #rootsOf(ranges: readonly LeafRange[]): Promise<TreeHash[]> {
    return Promise.all(ranges.map((range) => this.#rootOf(range)));
  }

  async #rootOf(range: LeafRange): Promise<TreeHash> {
    return foldRight(await Promise.all(completeSubtrees(range).map((subtree) => this.#hashOf(subtree))));
  }

  async #hashOf({ level, position }: Omit<TreeNode, 'hash'>): Promise<TreeHash> {
    const base = level - (level % STORED_LEVELS);
    const width = 2 ** (level - base);
    const first = position * width;
    const tile = await this.#tile(base, Math.floor(first / TILE_NODES));
    const hashes = tile.slice(first % TILE_NODES, (first % TILE_NODES) + width);
    if (hashes.length < width) throw new IncompleteTreeError('the log lacks entries or nodes of its tree');
    return foldPairs(hashes);
  }

  #tile(level: number, index: number): Promise<readonly TreeHash[]> {
    const key = `${level} ${index}`;
    const known = this.#tiles.get(key);
    if (known !== undefined) return known;
    const from = index * TILE_NODES;
    const to = Math.min(from + TILE_NODES, Math.floor(this.#size / 2 ** level));
    const tile = level === 0 ? this.#leaves(from, to) : this.#nodes(level, from, to);
    this.#tiles.set(key, tile);
    return tile;
  }

  /** A sequence number without an entry has the leaf of a MAC of zero bytes. */
  async #leaves(from: number, to: number): Promise<readonly TreeHash[]> {
    const leaves = Array.from({ length: to - from }, () => ABSENT_LEAF);
    for (const { seq, hmac } of await this.#store.run(readMacs(from + 1, to, TILE_NODES))) {
      leaves[seq - 1 - from] = leafHash(hmac);
    }
    return leaves;
  }

  async #nodes(level: number, from: number, to: number): Promise<readonly TreeHash[]> {
    const nodes = await this.#store.run(readTreeNodes(level, from, to));
    return nodes.map(({ position, hash }, at) => {
      const decoded = decodeHash(hash);
      if (decoded === null || position !== from + at) {
        throw new IncompleteTreeError('a stored node of the tree is missing or malformed');
      }
      return decoded;
    });
  }
}

const ABSENT_LEAF = leafHash('');

/** The root of a complete subtree over its 2^n hashes. */
function foldPairs(hashes: readonly TreeHash[]): TreeHash {
  let row = hashes;
  while (row.length > 1) {
    row = Array.from({ length: row.length / 2 }, (_, at) => nodeHash(row[2 * at] ?? '', row[2 * at + 1] ?? ''));
  }
  return row[0] ?? '';
}
