// Receipts against those that Go's packages made (frozen in test/vectors), and against texts that nothing may accept.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatReceipt, openReceipt, parseReceipt, signCheckpoint, signNote } from '../../src/crypto/checkpoint.ts';
import { inclusionRanges } from '../../src/crypto/tree.ts';
import { anyText, runs } from '../kit/property.ts';
import { AUDIT } from './audit-vectors.ts';
import { CHECKPOINTS, rangeRoots, SIGNER, signerFrom } from './checkpoint-vectors.ts';
import { flipped } from './vectors.ts';

const macs = AUDIT.entries.map(({ hmac }) => hmac);
const rootOf = rangeRoots(macs);

function receiptOf(seq: number, size: number): string {
  return formatReceipt({
    seq,
    hmac: macs[seq - 1] ?? '',
    proof: inclusionRanges(seq - 1, size).map(rootOf),
    checkpoint: signCheckpoint({ size, root: rootOf({ from: 0, to: size }) }, SIGNER),
  });
}

const RECEIPT = receiptOf(4, 6);

test('a receipt of each entry at each size is the one made with Go, byte for byte, and valid', () => {
  for (const { seq, size, receipt } of CHECKPOINTS.receipts) {
    assert.equal(receiptOf(seq, size), receipt);
    assert.deepEqual(openReceipt(receipt, SIGNER), { seq, size, hmac: macs[seq - 1] });
  }
  assert.equal(CHECKPOINTS.receipts.length, 21);
});

test('a receipt with any flipped bit is invalid', () => {
  for (const { altered, bit } of flipped(Buffer.from(RECEIPT)))
    assert.equal(openReceipt(altered.toString(), SIGNER), null, `bit ${bit}`);
});

test('a truncated receipt, and one with a line less, twice or moved, is invalid', () => {
  for (let length = 0; length < RECEIPT.length; length++)
    assert.equal(openReceipt(RECEIPT.slice(0, length), SIGNER), null, `length ${length}`);
  const lines = RECEIPT.split('\n');
  for (const [at, line] of lines.entries()) {
    const others = lines.toSpliced(at, 1);
    assert.equal(openReceipt(others.join('\n'), SIGNER), null, `without line ${at}`);
    for (let to = 0; to < lines.length; to++) {
      const [moved, twice] = [others.toSpliced(to, 0, line), lines.toSpliced(to, 0, line)].map((all) => all.join('\n'));
      if (moved !== RECEIPT) assert.equal(openReceipt(moved ?? '', SIGNER), null, `line ${at} moved to ${to}`);
      // The same signature twice is one signature.
      const isRepeatedSignature = line.startsWith('— ') && to >= lines.length - 2 && to < lines.length;
      if (!isRepeatedSignature) assert.equal(openReceipt(twice ?? '', SIGNER), null, `line ${at} again at ${to}`);
    }
  }
});

test('a receipt is valid only under the key and the name that signed it', () => {
  assert.equal(openReceipt(RECEIPT, signerFrom(9, SIGNER.name)), null);
  assert.equal(openReceipt(RECEIPT, { ...SIGNER, name: 'leasehold/another' }), null);
  const foreign = signNote(`leasehold/another\n${RECEIPT.split('\n').slice(-5, -3).join('\n')}\n`, SIGNER);
  assert.equal(openReceipt(RECEIPT.replace(/leasehold[\s\S]*$/, foreign), SIGNER), null);
});

test('a receipt does not prove another entry, position or size', () => {
  const parsed = parseReceipt(RECEIPT);
  assert.ok(parsed);
  for (let seq = 1; seq <= 7; seq++) {
    for (const hmac of macs) {
      const isEntry = seq === 4 && hmac === macs[3];
      assert.equal(openReceipt(formatReceipt({ ...parsed, seq, hmac }), SIGNER) !== null, isEntry, `${seq}`);
    }
  }
  for (const { size, note } of CHECKPOINTS.checkpoints) {
    const moved = formatReceipt({ ...parsed, checkpoint: note });
    assert.equal(openReceipt(moved, SIGNER) !== null, size === 6, `${size}`);
  }
});

test('the receipt of the only entry has one position', () => {
  const only = receiptOf(1, 1);
  assert.equal(openReceipt(only, SIGNER)?.seq, 1);
  assert.equal(openReceipt(only.replace('index 0', 'index 5'), SIGNER), null);
});

test('cosignatures of a receipt’s checkpoint are ignored', () => {
  assert.equal(openReceipt(`${RECEIPT}— witness.example/w1 AAAAAAA=\n`, SIGNER)?.seq, 4);
});

test('malformed lines of a receipt are rejected', () => {
  const [, extra = '', index = ''] = RECEIPT.split('\n');
  for (const [from, to] of [
    ['@v1\n', '@v2\n'],
    [`${extra}\n`, ''],
    [extra, 'extra '],
    [extra, `${extra}=`],
    [extra, `extra ${Buffer.alloc(31).toString('base64')}`],
    [extra, `extra ${Buffer.alloc(33).toString('base64')}`],
    [index, 'index -1'],
    [index, 'index 03'],
    [index, 'index 3 '],
    [index, 'index 9007199254740991'],
    [index, 'index 99999999999999999'],
    ['\n', '\r\n'],
  ] as const)
    assert.equal(openReceipt(RECEIPT.replaceAll(from, to), SIGNER), null, JSON.stringify(to));
});

test('a receipt has a position whose sequence number is exact', () => {
  const largest = Number.MAX_SAFE_INTEGER - 1;
  assert.equal(parseReceipt(RECEIPT.replace('index 3', `index ${largest}`))?.seq, Number.MAX_SAFE_INTEGER);
  assert.equal(parseReceipt(RECEIPT.replace('index 3', `index ${largest + 1}`)), null);
});

test('no input makes the parser of receipts throw, and what it reads is written as it was', () => {
  const part = fc.oneof(anyText(), fc.constantFrom('\n', '\n\n', 'index ', '3', ...RECEIPT.split(/(?<=\n)/)));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      const text = parts.join('');
      assert.equal(openReceipt(text, SIGNER) !== null, text === RECEIPT);
      const parsed = parseReceipt(text);
      if (parsed !== null) assert.equal(formatReceipt(parsed), text);
    }),
    runs(100, 1000),
  );
});
