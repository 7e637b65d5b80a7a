// The independent verifier agrees with the service: on the frozen log, on each of its tampered variants, and on
// generated logs. test/spec verifies the service's own export.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { exportAuditKeys } from '../../src/crypto/chain.ts';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
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

interface Case {
  readonly name: string;
  readonly evidence: Evidence;
  readonly status: 0 | 1 | 2;
  /** The verification result that is printed, without its message. */
  readonly result: object | undefined;
}

const broken = (name: string, evidence: Evidence, entry: number, timestamp: string | null): Case => ({
  name,
  evidence,
  status: 1,
  result: { valid: false, break_at_entry: entry, break_at_timestamp: timestamp },
});

function intactCase(name: string, log: readonly AuditEntry[], given: Evidence['head'], key: string): Case {
  const [first, last] = [log[0]?.timestamp, log.at(-1)?.timestamp];
  const result = { valid: true, entries: log.length, first_entry: first, last_entry: last };
  return { name, evidence: { text: toExport(log), head: given, auditKey: key }, status: 0, result };
}

/** A log with any text, and the same with a field of one entry altered. */
function generated(): Case[] {
  const keys = keysOf(AUDIT.root_key);
  const drafts = fc.array(fc.oneof(arbitraryEntry, arbitraryUse, arbitraryState), { minLength: 60, maxLength: 60 });
  return fc.sample(fc.tuple(drafts, fc.nat(59)), runs(2, 20)).flatMap(([list, at], index) => {
    const { entries, head: end } = chained(keys, list);
    const altered = entries.map((entry, each) => (each === at ? { ...entry, reason: `${entry.reason}.` } : entry));
    return [
      intactCase(`generated log ${index}`, entries, end, auditKey),
      broken(
        `generated log ${index}, altered at ${at + 1}: ${JSON.stringify(entries[at])}`,
        { text: toExport(altered), head: end, auditKey },
        at + 1,
        entries[at]?.timestamp ?? null,
      ),
    ];
  });
}

const CASES: readonly Case[] = [
  ...FROZEN_LOGS.flatMap((log) =>
    [log.head, null].map((given) => intactCase('a frozen log', log.entries, given, auditKey)),
  ),
  ...FROZEN_LOGS.flatMap((log) => log.tampered).map((twin) =>
    broken(
      twin.name,
      { text: toExport(twin.entries), head: twin.head, auditKey },
      twin.break_at_entry,
      twin.break_at_timestamp,
    ),
  ),
  broken(
    'a log under the key of another vault',
    { text: intact, head, auditKey: exportAuditKeys(keysFrom(4)) },
    1,
    AUDIT.entries[0]?.timestamp ?? null,
  ),
  ...CANNOT_TELL.map(
    ([name, odd]): Case => ({
      name,
      status: 2,
      result: undefined,
      evidence: { text: intact, head, auditKey, ...odd },
    }),
  ),
  ...generated(),
];

// One process for all of them: a start of Python costs more than a verification.
test('the verifier decides each log as the server does, and rejects what it cannot decide', async (t) => {
  const verdicts = await runVerifierOnMany(
    t,
    CASES.map(({ evidence }) => evidence),
  );
  for (const [index, { name, status, result }] of CASES.entries()) {
    const verdict = verdicts[index] ?? assert.fail();
    const { message, ...printed } = verdict.result ?? {};
    assert.deepEqual([verdict.status, verdict.result && printed], [status, result], `${name}: ${verdict.errors}`);
    if (status === 1) assert.match(message, new RegExp(`broken at entry ${printed.break_at_entry}:`), name);
    if (status === 2) assert.match(verdict.errors, /^Cannot tell: .+\.\n$/, name);
  }
});

test('the script itself exits with 1 for a broken log, and with 2 if it cannot decide', async (t) => {
  const other = await runVerifier(t, { text: intact, head, auditKey: exportAuditKeys(keysFrom(4)) });
  assert.deepEqual([other.status, other.result.break_at_entry], [1, 1]);
  const unknown = await runVerifier(t, { text: intact, head, auditKey: 'no key' });
  assert.deepEqual([unknown.status, unknown.result], [2, undefined]);
});
