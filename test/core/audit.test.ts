// The canonical text of entries, which their HMACs cover. SOURCE: docs/decisions.md, "The audit log".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EVENT_TYPES } from '../../src/core/permissions.ts';
import {
  actionOf,
  canonicalEntry,
  canonicalHead,
  type EntryWithoutMac,
  RARE_FIELDS,
  USE_FIELDS,
} from '../../src/vault/audit/audit-entry.ts';
import { anyText, runs } from '../kit/property.ts';

const FIELDS = [
  'seq',
  'id',
  'timestamp',
  'event_type',
  'agent_name',
  'resource',
  'action',
  'result',
  'policy_name',
  'lease_id',
  'code',
  'reason',
  'request_id',
  'remote_addr',
] as const satisfies readonly (keyof EntryWithoutMac)[];

const TRICKY = [
  '',
  'null',
  '"',
  '","',
  '\\',
  '\\"',
  ',',
  'a',
  'b',
  'a","b',
  'null,null',
  '\u0000',
  '\\ud83d',
  'é',
  'e\u0301',
];
// Lossy UTF-8 encodes all unpaired surrogates as the same bytes.
const HALVES = ['\ud83d', '\udd11', '\ufffd', '\ud83d\udd11'];
const texts = fc.oneof(fc.constantFrom(...TRICKY, ...HALVES), anyText(4));
const textsOrNull = fc.option(texts, { nil: null, freq: 3 });

const entries: fc.Arbitrary<EntryWithoutMac> = fc.record({
  seq: fc.oneof(fc.nat(12), fc.maxSafeNat()),
  id: texts,
  timestamp: texts,
  event_type: texts,
  agent_name: texts,
  resource: texts,
  action: texts,
  result: texts,
  policy_name: textsOrNull,
  lease_id: textsOrNull,
  code: textsOrNull,
  reason: textsOrNull,
  request_id: textsOrNull,
  remote_addr: textsOrNull,
});

const bytesOf = (entry: EntryWithoutMac): string => Buffer.from(canonicalEntry(entry)).toString('hex');

const number = fc.oneof(fc.nat(3), fc.maxSafeNat());
const uses: fc.Arbitrary<EntryWithoutMac> = fc
  .tuple(
    entries,
    fc.record({
      method: textsOrNull,
      host: textsOrNull,
      target_path: textsOrNull,
      status: fc.option(number),
      bytes_in: fc.option(number),
      bytes_out: fc.option(number),
      redactions: fc.option(number),
      ended: fc.constantFrom(null, 'complete', 'failed'),
    }),
  )
  .map(([entry, use]) => ({ ...entry, ...use }));

const states = fc
  .tuple(fc.oneof(entries, uses), textsOrNull, textsOrNull)
  .map(([entry, subject, state]) => ({ ...entry, subject, state }));

const ALL: readonly (keyof EntryWithoutMac)[] = [...FIELDS, ...RARE_FIELDS];

test('an entry can be restored from its canonical bytes, so different entries have different bytes', () => {
  fc.assert(
    fc.property(states, states, fc.constantFrom(...ALL), (entry, other, field) => {
      const [format, ...values] = JSON.parse(Buffer.from(canonicalEntry(entry)).toString('utf8'));
      assert.equal(format, 'leasehold-audit-v1');
      assert.deepEqual(
        values,
        ALL.map((each) => entry[each] ?? null),
      );
      const changed = { ...entry, [field]: other[field] };
      assert.equal(bytesOf(changed) === bytesOf(entry), (entry[field] ?? null) === (other[field] ?? null));
    }),
    runs(200, 2000),
  );
});

test('a field of a use that is left out counts as null', () => {
  const [entry] = fc.sample(entries, { numRuns: 1, seed: 1 });
  assert.ok(entry);
  const none = Object.fromEntries(USE_FIELDS.map((field) => [field, null]));
  assert.equal(bytesOf({ ...entry, ...none }), bytesOf(entry));
  assert.equal(bytesOf({ ...entry, ...none, host: 'a' }), bytesOf({ ...entry, host: 'a' }));
});

test('a head record’s canonical text differs from that of any entry and separates its fields', () => {
  const few = fc.constantFrom('', 'a', 'b');
  const heads = fc.record({ seq: fc.nat(2), hmac: few, epoch: fc.nat(2), tree: few, control: few });
  fc.assert(
    fc.property(entries, heads, heads, (entry, head, other) => {
      assert.notEqual(canonicalHead(head), canonicalEntry(entry));
      const isSame = JSON.stringify(head) === JSON.stringify(other);
      assert.equal(canonicalHead(head) === canonicalHead(other), isSame);
    }),
    runs(100, 500),
  );
});

test('the action of every event is the part after the dot', () => {
  for (const event of EVENT_TYPES) assert.equal(`${event.split('.')[0]}.${actionOf[event]}`, event);
  assert.equal(actionOf['credential.retrieve'], 'retrieve');
});
