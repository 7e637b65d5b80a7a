// The independent verifier understands a log under several audit keys, whole or in part.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entryMac, handOver } from '../../src/crypto/chain.ts';
import { GENESIS_MAC } from '../../src/vault/audit/audit-entry.ts';
import { headOf } from '../kit/head.ts';
import { runVerifierOnMany, toExport } from './python-verifier.ts';
import { keysFrom } from './vectors.ts';

const [first, second] = [keysFrom(1).audit, keysFrom(2).audit];
const ROTATED_AT = 3;

const entries: { seq: number; hmac: string; reason: string | null }[] = [];
let hmac = GENESIS_MAC;
for (let seq = 1; seq <= 6; seq++) {
  const isRotation = seq === ROTATED_AT;
  const plain = {
    seq,
    id: `0190a000-0000-7000-8000-00000000000${seq}`,
    timestamp: `2026-01-02T03:04:0${seq}.000Z`,
    event_type: isRotation ? 'key.rotate_audit' : 'service.start',
    agent_name: 'admin',
    resource: isRotation ? 'key:audit' : '*',
    action: isRotation ? 'rotate_audit' : 'start',
    result: 'allowed',
    policy_name: null,
    lease_id: null,
    code: null,
    // A character beyond ASCII takes the other path of the parser.
    reason: seq === 5 ? 'März' : null,
    request_id: null,
    remote_addr: null,
  };
  const entry = isRotation ? handOver(second, hmac, plain) : plain;
  hmac = entryMac(seq <= ROTATED_AT ? first : second, hmac, entry);
  entries.push({ ...entry, hmac });
}
const macs = entries.map((entry) => entry.hmac);
const head = headOf(second, macs);
const text = toExport(entries);
const base64 = (key: typeof first) => key.export().toString('base64');
const both = `1 ${base64(first)}\n4 ${base64(second)}`;

const tampered = (seq: number, change: object) =>
  toExport(entries.map((entry) => (entry.seq === seq ? { ...entry, ...change } : entry)));
/** The log as it would be if the second key began without an entry that says so. */
const other = { ...entries[2], event_type: 'service.stop' };

test('a log under two keys is verified with both, and not with one of them', async (t) => {
  const evidence = (auditKey: string, log = text) => ({ text: log, head, auditKey });
  const [whole, former, next, wrong, altered, forged, unsaid, afterwards, cut] = await runVerifierOnMany(t, [
    evidence(both),
    evidence(base64(first)),
    evidence(`4 ${base64(second)}`),
    evidence(`1 ${base64(first)}\n5 ${base64(second)}`),
    evidence(both, tampered(5, { resource: 'x' })),
    evidence(`4 ${base64(second)}`, tampered(3, { reason: `next audit key: ${GENESIS_MAC}` })),
    evidence(`4 ${base64(second)}`, toExport(entries.map((entry) => (entry.seq === 3 ? other : entry)))),
    evidence(`4 ${base64(second)}`, tampered(2, { hmac: GENESIS_MAC })),
    // A holder of the former key can cut the log before the rotation, with a head record that fits.
    { text: toExport(entries.slice(0, 2)), head: headOf(first, macs.slice(0, 2)), auditKey: both },
  ]);
  assert.deepEqual([whole?.status, whole?.result.entries, whole?.errors], [0, 6, '']);
  // Entries that were not verified prove nothing, so a key alone never gives the verdict that the log is valid.
  assert.match(former?.errors ?? '', /audit key of the head record was not given/);
  assert.match(next?.errors ?? '', /audit key of 3 entries was not given/);
  assert.match(cut?.errors ?? '', /an audit key begins at entry 4, and the export ends at 2/);
  assert.deepEqual([former?.status, next?.status, cut?.status], [2, 2, 2]);
  for (const [verdict, entry] of [
    [wrong, 4],
    [altered, 5],
    [forged, 3],
    [unsaid, 3],
    [afterwards, 3],
  ] as const)
    assert.deepEqual([verdict?.status, verdict?.result.break_at_entry], [1, entry], JSON.stringify(verdict));
});
