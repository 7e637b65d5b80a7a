// Checkpoints and proofs against Go's packages (frozen in test/vectors), and against texts that nothing may accept.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  formatReceipt,
  openCheckpoint,
  parseCheckpoint,
  signCheckpoint,
  signNote,
} from '../../src/crypto/checkpoint.ts';
import {
  CompactRange,
  consistencyRanges,
  decodeHash,
  encodeHash,
  inclusionRanges,
  isConsistent,
} from '../../src/crypto/tree.ts';
import { anyText, runs } from '../kit/property.ts';
import { openReceipt } from '../kit/receipts.ts';
import { AUDIT } from './audit-vectors.ts';
import { CHECKPOINTS, rangeRoots, SIGNER, signerFrom } from './checkpoint-vectors.ts';
import { flipped } from './vectors.ts';

const ROOT = CHECKPOINTS.checkpoints[6]?.root ?? '';

test('a checkpoint of each size of the frozen log is the one of Go, byte for byte', () => {
  const tree = CompactRange.empty();
  for (const { size, root, note } of CHECKPOINTS.checkpoints) {
    assert.equal(tree.size, size);
    assert.equal(encodeHash(tree.root), root);
    assert.equal(signCheckpoint(tree, SIGNER), note);
    assert.deepEqual(openCheckpoint(note, SIGNER), { origin: CHECKPOINTS.origin, size, root: tree.root });
    tree.append(AUDIT.entries[size]?.hmac ?? '', []);
  }
  assert.equal(CHECKPOINTS.checkpoints.length, AUDIT.entries.length + 1);
});

test('a consistency proof between any two sizes of the frozen log is the one of Go', () => {
  const rootOf = rangeRoots(AUDIT.entries.map(({ hmac }) => hmac));
  for (const { from, to, proof } of CHECKPOINTS.consistency) {
    assert.deepEqual(
      consistencyRanges(from, to).map((range) => encodeHash(rootOf(range))),
      proof,
    );
    const [earlier, later] = [from, to].map((size) => ({ size, root: rootOf({ from: 0, to: size }) }));
    assert.ok(earlier && later);
    const hashes = proof.map((hash) => decodeHash(hash) ?? '');
    assert.equal(isConsistent(earlier, later, hashes), true, `${from} ${to}`);
  }
  assert.equal(CHECKPOINTS.consistency.length, 21);
});

test('all proofs of trees with up to 600 leaves are those of Go', () => {
  const macs = Array.from({ length: 600 }, (_, index) => createHash('sha256').update(`leaf ${index}`).digest('base64'));
  const rootOf = rangeRoots(macs);
  for (const { size, root, records, trees } of CHECKPOINTS.trees) {
    const [recordDigest, treeDigest] = [createHash('sha256'), createHash('sha256')];
    for (let index = 0; index < size; index++) {
      for (const range of inclusionRanges(index, size)) recordDigest.update(rootOf(range), 'latin1');
      for (const range of consistencyRanges(index + 1, size)) treeDigest.update(rootOf(range), 'latin1');
    }
    assert.equal(encodeHash(rootOf({ from: 0, to: size })), root, `root of ${size}`);
    assert.equal(recordDigest.digest('base64'), records, `inclusion in ${size}`);
    assert.equal(treeDigest.digest('base64'), trees, `consistency with ${size}`);
  }
  assert.equal(CHECKPOINTS.trees.at(-1)?.size, 600);
});

test('a checkpoint with any flipped bit is invalid, and so is one of another origin or key', () => {
  const note = CHECKPOINTS.checkpoints[6]?.note ?? '';
  for (const { altered, bit } of flipped(Buffer.from(note)))
    assert.equal(openCheckpoint(altered.toString(), SIGNER), null, `bit ${bit}`);
  assert.equal(openCheckpoint(note, signerFrom(9, SIGNER.name)), null);
  assert.equal(openCheckpoint(note, { ...SIGNER, name: 'leasehold/another' }), null);
  // The key's name is right, and the text names another log.
  const foreign = signNote(`leasehold/another\n6\n${ROOT}\n`, SIGNER);
  assert.equal(openCheckpoint(foreign, SIGNER), null);
});

test('a signed text that is not a checkpoint is rejected', () => {
  const { origin } = CHECKPOINTS;
  const sizes = ['', '-1', '+6', '06', '6 ', ' 6', '6.0', '6e0', '0x6', '٦', 'NaN', '9007199254740992', '1'.repeat(17)];
  const roots = ['', ROOT.slice(1), ROOT.slice(0, -1), `${ROOT}=`, ` ${ROOT}`, ROOT.replace('=', '==')];
  const texts = [
    '\n',
    `${origin}\n`,
    `${origin}\n6\n`,
    `\n6\n${ROOT}\n`,
    `6\n${ROOT}\n`,
    ...sizes.map((size) => `${origin}\n${size}\n${ROOT}\n`),
    ...roots.map((root) => `${origin}\n6\n${root}\n`),
  ];
  for (const text of texts) assert.equal(openCheckpoint(signNote(text, SIGNER), SIGNER), null, JSON.stringify(text));
  const largest = `${origin}\n${Number.MAX_SAFE_INTEGER}\n${ROOT}\n`;
  assert.equal(openCheckpoint(signNote(largest, SIGNER), SIGNER)?.size, Number.MAX_SAFE_INTEGER);
});

test('extension lines of a checkpoint are signed and ignored', () => {
  const text = `${CHECKPOINTS.origin}\n6\n${ROOT}\nextension 1\nextension 2\n`;
  const note = signNote(text, SIGNER);
  assert.equal(openCheckpoint(note, SIGNER)?.size, 6);
  assert.equal(openCheckpoint(note.replace('extension 2', 'extension 3'), SIGNER), null);
});

test('no input makes the parser of checkpoints throw', () => {
  const part = fc.oneof(anyText(), fc.constantFrom('\n', CHECKPOINTS.origin, '6', ROOT));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      const text = parts.join('');
      const parsed = parseCheckpoint(text);
      if (parsed !== null) assert.ok(text.startsWith(`${parsed.origin}\n${parsed.size}\n${encodeHash(parsed.root)}`));
    }),
    runs(100, 1000),
  );
});

// Receipts, compared with receipts that Go's packages made.

const macs = AUDIT.entries.map(({ hmac }) => hmac);
const rootOf = rangeRoots(macs);

const partsOf = (seq: number, size: number) => ({
  seq,
  hmac: macs[seq - 1] ?? '',
  proof: inclusionRanges(seq - 1, size).map(rootOf),
  checkpoint: signCheckpoint({ size, root: rootOf({ from: 0, to: size }) }, SIGNER),
});
const receiptOf = (seq: number, size: number): string => formatReceipt(partsOf(seq, size));
const PARTS = partsOf(4, 6);

test('a receipt of each entry at each size is the one made with Go, byte for byte, and valid', () => {
  for (const { seq, size, receipt } of CHECKPOINTS.receipts) {
    assert.equal(receiptOf(seq, size), receipt);
    assert.deepEqual(openReceipt(receipt, SIGNER), { seq, size, hmac: macs[seq - 1] });
  }
  assert.equal(CHECKPOINTS.receipts.length, 21);
});

test('a receipt does not prove another entry, position or size', () => {
  for (let seq = 1; seq <= 7; seq++) {
    for (const hmac of macs) {
      const isEntry = seq === 4 && hmac === macs[3];
      assert.equal(openReceipt(formatReceipt({ ...PARTS, seq, hmac }), SIGNER) !== null, isEntry, `${seq}`);
    }
  }
  for (const { size, note } of CHECKPOINTS.checkpoints) {
    const moved = formatReceipt({ ...PARTS, checkpoint: note });
    assert.equal(openReceipt(moved, SIGNER) !== null, size === 6, `${size}`);
  }
});

test('the receipt of the only entry has one position', () => {
  const only = receiptOf(1, 1);
  assert.equal(openReceipt(only, SIGNER)?.seq, 1);
  assert.equal(openReceipt(only.replace('index 0', 'index 5'), SIGNER), null);
});

test('cosignatures of a receipt’s checkpoint are ignored', () => {
  assert.equal(openReceipt(`${receiptOf(4, 6)}— witness.example/w1 AAAAAAA=\n`, SIGNER)?.seq, 4);
});
