// The independent verifier agrees with the service: on the frozen log, on each of its tampered variants, and on
// generated logs. test/spec verifies the service's own export.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { exportAuditKey } from '../../src/crypto/chain.ts';
import { runs } from '../kit/property.ts';
import {
  AUDIT,
  AUDIT_OF_USES,
  arbitraryEntry,
  arbitraryState,
  arbitraryUse,
  chained,
  FROZEN_LOGS,
} from './audit-vectors.ts';
import { type Evidence, runVerifier, runVerifierOnMany, toExport } from './python-verifier.ts';
import { keysFrom, keysOf } from './vectors.ts';

const auditKey = AUDIT.audit_key;
const intact = toExport(AUDIT.entries);
const { head } = AUDIT;

test('the frozen logs are valid, with and without its head record', async (t) => {
  const logs = FROZEN_LOGS.flatMap((log) => [log.head, null].map((given) => ({ log, given })));
  const verdicts = await runVerifierOnMany(
    t,
    logs.map(({ log, given }) => ({ text: toExport(log.entries), head: given, auditKey })),
  );
  for (const [index, { log }] of logs.entries()) {
    const { status, result } = verdicts[index] ?? assert.fail();
    assert.equal(status, 0);
    assert.deepEqual(result, {
      valid: true,
      entries: log.entries.length,
      first_entry: log.entries[0]?.timestamp,
      last_entry: log.entries.at(-1)?.timestamp,
    });
  }
});

test('the verifier finds the break of each tampered log where the service does', async (t) => {
  const tampered = FROZEN_LOGS.flatMap((log) => log.tampered);
  const evidence = tampered.map((twin) => ({ text: toExport(twin.entries), head: twin.head, auditKey }));
  const verdicts = await runVerifierOnMany(t, evidence);
  for (const [index, { name, break_at_entry, break_at_timestamp }] of tampered.entries()) {
    const verdict = verdicts[index];
    assert.equal(verdict?.status, 1, `${name}: ${verdict?.errors}`);
    const { valid, break_at_entry: entry, break_at_timestamp: timestamp, message } = verdict.result;
    assert.deepEqual([valid, entry, timestamp], [false, break_at_entry, break_at_timestamp], name);
    assert.match(message, new RegExp(`broken at entry ${break_at_entry}:`), name);
  }
});

test('the exit code is 1 for a broken log, as with the key of another vault, and 2 if it cannot decide', async (t) => {
  const broken = await runVerifier(t, { text: intact, head, auditKey: exportAuditKey(keysFrom(4)) });
  assert.deepEqual([broken.status, broken.result.break_at_entry], [1, 1]);
  const unknown = await runVerifier(t, { text: intact, head, auditKey: 'no key' });
  assert.deepEqual([unknown.status, unknown.result], [2, undefined]);
});

const line = AUDIT.entries.map((entry) => JSON.stringify(entry));
const use = JSON.stringify(AUDIT_OF_USES.entries[2]);
const CANNOT_TELL: readonly (readonly [name: string, evidence: Partial<Evidence>])[] = [
  ['the export is empty and there is no head record', { text: '', head: null }],
  ['the last line has no end', { text: intact.slice(0, -1) }],
  ['a line is not JSON', { text: `${line[0]}\n{"seq":2\n` }],
  ['a line has a field too many', { text: `${line[0]?.replace('{', '{"more":1,')}\n` }],
  ['a line lacks a field', { text: `${line[0]?.replace('"reason":null,', '')}\n` }],
  ['a line has a key twice', { text: `${line[0]?.replace('{', '{"seq":1,')}\n` }],
  ['a field has another type', { text: `${line[0]?.replace('"seq":1', '"seq":"1"')}\n` }],
  ['an entry about a use lacks one of its fields', { text: `${use.replace('"ended":null', '"more":null')}\n` }],
  ['the status of a use is a text', { text: `${use.replace('"status":null', '"status":"200"')}\n` }],
  ['the host of a use is a number', { text: `${use.replace('"host":"api.openai.com"', '"host":1')}\n` }],
  ['the redactions of a use are a truth value', { text: `${use.replace('"redactions":null', '"redactions":true')}\n` }],
  ['the key is too short', { auditKey: Buffer.alloc(31).toString('base64') }],
  ['the key is in another spelling', { auditKey: auditKey.slice(0, -1) }],
  ['the head record is malformed', { head: 'six' }],
];

test('the verifier rejects input that it cannot decide', async (t) => {
  const evidence = CANNOT_TELL.map(([, odd]) => ({ text: intact, head, auditKey, ...odd }));
  const verdicts = await runVerifierOnMany(t, evidence);
  for (const [index, [name]] of CANNOT_TELL.entries()) {
    const verdict = verdicts[index];
    assert.deepEqual([verdict?.status, verdict?.result], [2, undefined], `${name}: ${verdict?.errors}`);
    assert.match(verdict?.errors ?? '', /^Cannot tell: .+\.\n$/, name);
  }
});

test('logs with any text are valid, and broken when one of their fields is altered', async (t) => {
  const keys = keysOf(AUDIT.root_key);
  const drafts = fc.array(fc.oneof(arbitraryEntry, arbitraryUse, arbitraryState), { minLength: 60, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(drafts, fc.nat(59), async (list, at) => {
      const { entries, head: end } = chained(keys, list);
      const altered = entries.map((entry, index) => (index === at ? { ...entry, reason: `${entry.reason}.` } : entry));
      const logs = [entries, altered].map((log) => ({ text: toExport(log), head: end, auditKey }));
      const [good, bad] = await runVerifierOnMany(t, logs);
      assert.deepEqual([good?.status, good?.result?.entries], [0, 60], String(good?.errors));
      assert.deepEqual([bad?.status, bad?.result?.break_at_entry], [1, at + 1], String(bad?.errors));
    }),
    // Each try is a process: the first counterexample is enough.
    { ...runs(2), endOnFailure: true },
  );
});
