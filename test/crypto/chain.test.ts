// The chain of the audit log: the frozen vectors of test/vectors/audit-v*.json, and properties of arbitrary entries.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  auditKeyAt,
  entryMac,
  exportAuditKeys,
  headMac,
  isHeadAuthentic,
  isHeadInForce,
} from '../../src/crypto/chain.ts';
import { type AuditEntry, canonicalEntry, canonicalHead, GENESIS_MAC } from '../../src/vault/audit/audit-entry.ts';
import { headOf } from '../kit/head.ts';
import { wellFormedText } from '../kit/property.ts';
import {
  AUDIT,
  arbitraryEntry,
  arbitraryState,
  arbitraryUse,
  chained,
  checkChain,
  FROZEN_LOGS,
} from './audit-vectors.ts';
import { flipped, keysFrom, keysOf } from './vectors.ts';

const keys = keysOf(AUDIT.root_key);
const anyEntry = fc.oneof(arbitraryEntry, arbitraryUse, arbitraryState);

test('the audit key equals the frozen one', () => assert.equal(exportAuditKeys(keys), AUDIT.audit_key));

test('the canonical bytes of the frozen entries equal the frozen ones', () => {
  for (const { entries, canonical } of FROZEN_LOGS) {
    assert.equal(canonical.length, entries.length);
    assert.deepEqual(entries.map(canonicalEntry), canonical);
  }
});

test('each frozen entry MAC covers the previous one, and the head record the last', () => {
  for (const { entries, head } of FROZEN_LOGS) {
    let previous = GENESIS_MAC;
    for (const entry of entries) {
      assert.equal(entryMac(keys.audit, previous, entry), entry.hmac, `entry ${entry.seq}`);
      previous = entry.hmac;
    }
    assert.equal(head.hmac, previous);
    assert.equal(headMac(keys.audit, head), head.mac);
    assert.equal(isHeadAuthentic(keys.audit, head), true);
  }
});

test('the frozen log is valid, and so is each prefix with its own head record', () => {
  for (const log of FROZEN_LOGS) {
    for (let length = 0; length <= log.entries.length; length++) {
      const entries = log.entries.slice(0, length);
      const macs = entries.map(({ hmac }) => hmac);
      const head = headOf(keys.audit, macs);
      assert.equal(checkChain(keys, entries, head), null);
    }
  }
});

for (const { name, entries, head, break_at_entry, break_at_timestamp } of FROZEN_LOGS.flatMap(
  ({ tampered }) => tampered,
)) {
  test(`a break is found at its entry: ${name}`, () => {
    const found = checkChain(keys, entries, head);
    assert.deepEqual([found?.entry, found?.timestamp], [break_at_entry, break_at_timestamp]);
    assert.notEqual(found?.reason, '');
  });
}

test('a log without its head record is broken after its last entry', () => {
  const found = checkChain(keys, AUDIT.entries, null);
  assert.equal(found?.entry, AUDIT.entries.length + 1);
});

test('two different entries never have the same canonical bytes', () => {
  fc.assert(
    fc.property(anyEntry, anyEntry, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      assert.equal(canonicalEntry(one) === canonicalEntry(other), isSame);
    }),
  );
});

test('a change of any field of any entry is found at that entry', () => {
  const drafts = fc.array(anyEntry, { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(drafts, fc.nat(), fc.nat(), wellFormedText(), (list, at, which, text) => {
      const { entries, head } = chained(keys, list);
      assert.equal(checkChain(keys, entries, head), null);
      const index = at % entries.length;
      const original = entries[index];
      assert.ok(original);
      const fields = Object.keys(original).filter((field) => field !== 'seq');
      const field = fields[which % fields.length] as Exclude<keyof AuditEntry, 'seq'>;
      const altered = { ...original, [field]: original[field] === text ? `${text}.` : text };
      const found = checkChain(keys, entries.with(index, altered), head);
      assert.equal(found?.entry, index + 1, field);
    }),
  );
});

test('an entry MAC depends on the key, on the previous entry, and on every earlier MAC', () => {
  const [first, second] = AUDIT.entries;
  assert.ok(first && second);
  const links = [
    entryMac(keys.audit, GENESIS_MAC, first),
    entryMac(keysFrom(3).audit, GENESIS_MAC, first),
    entryMac(keys.audit, second.hmac, first),
    ...[...flipped(Buffer.from(GENESIS_MAC, 'base64'))].map(({ altered }) =>
      entryMac(keys.audit, altered.toString('base64'), first),
    ),
  ];
  assert.equal(new Set(links).size, links.length);
});

test('a head record is authentic only under its key, and with its own fields in their spelling', () => {
  const { head } = AUDIT;
  const { seq, hmac, epoch, tree, control, mac } = head;
  assert.equal(canonicalHead(head), JSON.stringify(['leasehold-head-v2', seq, hmac, epoch, tree, control]));
  assert.equal(isHeadAuthentic(keysFrom(3).audit, head), false);
  for (const other of [
    { seq: seq - 1 },
    { seq: seq + 10 },
    { hmac: GENESIS_MAC },
    { hmac: hmac.slice(0, -1) },
    { epoch: epoch + 1 },
    { tree: '' },
    { tree: tree.slice(0, -1) },
    { control: '' },
    { control: GENESIS_MAC },
    { mac: mac.slice(0, -1) },
    { mac: '' },
    { mac: hmac },
  ])
    assert.equal(isHeadAuthentic(keys.audit, { ...head, ...other }), false, JSON.stringify(other));
});

test('a head record under an audit key that was replaced before is not in force', () => {
  const auditKeys = [1, 5].map((fromSeq) => ({ fromSeq, key: keysFrom(fromSeq).audit }));
  const rotated = { auditKeys, auditAt: (seq: number) => auditKeyAt(auditKeys, seq) };
  const isInForce = (seq: number, under: number): boolean => {
    const fields = { ...AUDIT.head, seq };
    return isHeadInForce(rotated, { ...fields, mac: headMac(keysFrom(under).audit, fields) });
  };
  // Entry 4 is that of the rotation, under the former key.
  assert.deepEqual([isInForce(3, 1), isInForce(4, 1), isInForce(5, 1), isInForce(5, 5)], [false, true, false, true]);
});
