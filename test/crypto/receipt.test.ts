// Receipts, compared with receipts that Go's packages made (frozen in test/vectors).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatReceipt, signCheckpoint } from '../../src/crypto/checkpoint.ts';
import { inclusionRanges } from '../../src/crypto/tree.ts';
import { openReceipt } from '../kit/receipts.ts';
import { AUDIT } from './audit-vectors.ts';
import { CHECKPOINTS, rangeRoots, SIGNER } from './checkpoint-vectors.ts';

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
