// The Merkle tree against the definitions of RFC 6962, computed recursively from all leaves.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  CompactRange,
  completeSubtrees,
  consistencyRanges,
  decodeHash,
  encodeHash,
  inclusionRanges,
  isConsistent,
  type LeafRange,
  leafHash,
  rootOfInclusion,
  type TreeNode,
} from '../../src/crypto/tree.ts';

const MAX_LEAVES = 600;
const macs = Array.from({ length: MAX_LEAVES }, (_, index) =>
  createHash('sha256').update(`leaf ${index}`).digest('base64'),
);

const sha256 = (...parts: readonly Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest();

/** MTH of RFC 6962, section 2.1, of the leaves from `from` to before `to`. */
function treeHash(from: number, to: number): Buffer {
  if (from === to) return sha256();
  if (to - from === 1) return sha256(Buffer.from([0]), Buffer.from(macs[from] ?? '', 'base64'));
  const split = from + 2 ** (Math.ceil(Math.log2(to - from)) - 1);
  return sha256(Buffer.from([1]), knownHash(from, split), knownHash(split, to));
}

const hashes = new Map<string, Buffer>();

/** The same, computed once. */
function knownHash(from: number, to: number): Buffer {
  const name = `${from}-${to}`;
  const hash = hashes.get(name) ?? treeHash(from, to);
  hashes.set(name, hash);
  return hash;
}

const rootAt = (size: number): string => knownHash(0, Math.min(size, MAX_LEAVES)).toString('latin1');
const hashesOf = (ranges: readonly LeafRange[]): string[] =>
  ranges.map(({ from, to }) => knownHash(from, to).toString('latin1'));

function treeOf(size: number, nodes: TreeNode[] = []): CompactRange {
  const tree = CompactRange.empty();
  for (const mac of macs.slice(0, size)) tree.append(mac, nodes);
  return tree;
}

const sizes = fc.integer({ min: 0, max: MAX_LEAVES });

test('the root is that of RFC 6962 at every size, also after the tree was written and read', () => {
  let tree = CompactRange.empty();
  for (let size = 0; size <= MAX_LEAVES; size++) {
    assert.equal(tree.root, rootAt(size), `size ${size}`);
    tree = CompactRange.parse(tree.toString(), size) ?? assert.fail(`size ${size}`);
    const mac = macs[size];
    if (mac !== undefined) tree.append(mac, []);
  }
});

test('a copy is independent of its original', () => {
  const tree = treeOf(7);
  const before = tree.toString();
  tree.copy().append(macs[7] ?? '', []);
  assert.deepEqual([tree.toString(), tree.size], [before, 7]);
});

test('a compact range of another size, spelling or length is not accepted', () => {
  const text = treeOf(6).toString();
  for (const [broken, size] of [
    [text, 7],
    [text, 4],
    [text.slice(0, -4), 6],
    [`${text}\n`, 6],
    ['', 6],
    [text, 0],
  ] as const) {
    assert.equal(CompactRange.parse(broken, size), null, `${size} ${broken}`);
  }
});

test('appending names each complete subtree of 256 leaves, with its root', () => {
  const nodes: TreeNode[] = [];
  treeOf(MAX_LEAVES, nodes);
  assert.deepEqual(
    nodes.map(({ level, position, hash }) => [level, position, hash]),
    [0, 1].map((position) => [8, position, hashesOf([{ from: position * 256, to: position * 256 + 256 }])[0]]),
  );
});

test('a MAC that is not base64 of 32 bytes has the leaf of zero bytes, whatever came before it', () => {
  const zero = leafHash(Buffer.alloc(32).toString('base64'));
  for (const broken of ['', 'AAAA', 'not base64!']) {
    leafHash(macs[1] ?? '');
    assert.equal(leafHash(broken), zero, broken);
  }
});

test('an inclusion proof yields the root for its own leaf, index and size only', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MAX_LEAVES }), fc.nat(), fc.nat(), (size, at, other) => {
      const index = at % size;
      const proof = hashesOf(inclusionRanges(index, size));
      assert.ok(proof.length <= Math.ceil(Math.log2(size)));
      const [mac, wrong] = [macs[index] ?? '', macs[other % MAX_LEAVES] ?? ''];
      assert.equal(rootOfInclusion(mac, index, size, proof), rootAt(size));
      if (wrong !== mac) assert.notEqual(rootOfInclusion(wrong, index, size, proof), rootAt(size));
      const elsewhere = other % size;
      if (elsewhere !== index) assert.notEqual(rootOfInclusion(mac, elsewhere, size, proof), rootAt(size));
      assert.equal(rootOfInclusion(mac, index, size, [...proof, rootAt(size)]), null);
      if (proof.length > 0) assert.equal(rootOfInclusion(mac, index, size, proof.slice(1)), null);
      assert.equal(rootOfInclusion(mac, size, size, proof), null);
    }),
    { numRuns: 400 },
  );
});

test('a consistency proof shows that one tree extends the other, and no other pair', () => {
  fc.assert(
    fc.property(sizes, sizes, fc.nat(), (a, b, at) => {
      const [old, size] = [Math.min(a, b), Math.max(a, b)];
      const proof = hashesOf(consistencyRanges(old, size));
      const [earlier, later] = [
        { size: old, root: rootAt(old) },
        { size, root: rootAt(size) },
      ];
      assert.equal(isConsistent(earlier, later, proof), true, `${old} ${size}`);
      // The empty tree is extended by every tree.
      const isAny = size === MAX_LEAVES || (old === 0 && size > 0);
      assert.equal(isConsistent(earlier, { ...later, root: rootAt(size + 1) }, proof), isAny, 'root');
      if (old > 0) assert.equal(isConsistent({ ...earlier, root: rootAt(old - 1) }, later, proof), false, 'old root');
      assert.equal(isConsistent(earlier, later, [...proof, rootAt(1)]), false, 'longer');
      if (old < size) assert.equal(isConsistent(later, earlier, proof), false, 'backwards');
      if (proof.length === 0) return;
      assert.equal(isConsistent(earlier, later, proof.with(at % proof.length, rootAt(0))), false, 'altered');
    }),
    { numRuns: 400 },
  );
});

test('a range consists of the complete subtrees that cover it without gaps', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MAX_LEAVES }), fc.nat(), (size, at) => {
      for (const range of [{ from: 0, to: size }, ...inclusionRanges(at % size, size)]) {
        let next = range.from;
        for (const { level, position } of completeSubtrees(range)) {
          assert.equal(position * 2 ** level, next);
          next += 2 ** level;
        }
        assert.equal(next, range.to);
      }
    }),
  );
});

test('a hash is strict base64 of 32 bytes', () => {
  const text = encodeHash(rootAt(3));
  assert.equal(decodeHash(text), rootAt(3));
  for (const broken of ['', text.slice(1), `${text}=`, `${text.slice(0, -2)}B=`])
    assert.equal(decodeHash(broken), null);
});
