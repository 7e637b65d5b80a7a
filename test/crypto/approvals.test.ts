// The encrypted request of an approval, its row's MAC and the key of a grant, frozen in test/vectors/approvals-v2.json.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsMac } from '../../src/crypto/row-mac.ts';
import { decryptApprovalRequest, encryptApprovalRequest } from '../../src/crypto/value-encryption.ts';
import { isAuthentic, withMac } from '../../src/ledger/authenticated-rows.ts';
import type { Approval } from '../../src/vault/approvals/approval.ts';
import { flipped, keysFrom, keysOf, readVectors } from './vectors.ts';

const vectors = readVectors<{
  root_key: string;
  row: Approval;
  mac: string;
  key: { fields: readonly string[]; mac: string };
  request: { id: string; text: string; key: string; sealed: string };
}>('approvals-v2.json');
const keys = keysOf(vectors.root_key);
const { id, text, sealed } = vectors.request;
const bytes = Buffer.from(sealed, 'base64');

test('the frozen request is encrypted to the frozen bytes, and they are decrypted to it', () => {
  assert.equal(Buffer.from(encryptApprovalRequest(keys.row, id, text)).toString('base64'), sealed);
  assert.equal(decryptApprovalRequest(keys.row, id, bytes), text);
});

test('an altered or cut request, and that of another approval or vault, is not decrypted', () => {
  for (const { altered, bit } of flipped(bytes)) {
    assert.equal(decryptApprovalRequest(keys.row, id, altered), null, `bit ${bit}`);
  }
  for (let length = 0; length < bytes.length; length++) {
    assert.equal(decryptApprovalRequest(keys.row, id, bytes.subarray(0, length)), null, `${length} bytes`);
  }
  assert.equal(decryptApprovalRequest(keys.row, id.replace(/.$/, '2'), bytes), null);
  for (const key of [keysFrom(7).row, keys.audit]) assert.equal(decryptApprovalRequest(key, id, bytes), null);
});

test('the frozen row and the frozen key of a grant have their frozen MACs', () => {
  const row = { ...vectors.row, mac: vectors.mac };
  assert.equal(withMac(keys.row, 'approval', vectors.row).mac, vectors.mac);
  assert.equal(isAuthentic(keys.row, 'approval', row), true);
  assert.equal(fieldsMac(keys.row, 'approval-key', vectors.key.fields), vectors.key.mac);
  assert.equal(vectors.row.key, vectors.key.mac);
});

test('the MAC of a row covers each of its fields', () => {
  for (const [field, value] of Object.entries(vectors.row)) {
    const altered = value === null ? '' : typeof value === 'number' ? value + 1 : `${value} `;
    const row = { ...vectors.row, mac: vectors.mac, [field]: altered };
    assert.equal(isAuthentic(keys.row, 'approval', row), false, field);
  }
});
