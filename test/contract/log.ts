/** Contract: reading and searching the audit log. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AuditFilter, countEntries, findSeqAt, readEntries } from '../../src/store/audit-log.ts';
import type { Store } from '../../src/store/port.ts';
import { openLogReader } from '../../src/store/readers.ts';
import type { Procedure } from '../../src/store/statement.ts';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import { runs } from '../kit/property.ts';
import { anEntry, at, commit, T0 } from './rows.ts';
import { matchEntries } from './scan.ts';
import type { Subject } from './store.ts';

const NO_FILTER: AuditFilter = { agentName: null, resource: null, action: null, eventType: null, result: null };
const to = (last: number) => ({ from: 1, to: last, order: 'asc' as const });
const numbersTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

/** Characters that are special in a glob, LIKE, GLOB or a regular expression. */
const RESOURCES = [
  'a',
  'ab',
  'abc',
  'aXc',
  'a%c',
  'a_c',
  'a[c',
  'a]c',
  'a[b]c',
  'a\\c',
  'a*c',
  'a?c',
  'a^c',
  'a.c',
  'a+c',
  'a|c',
  '(a)',
  '$',
  '^',
  '%',
  '_',
  '*',
  '?',
  '\\',
  '[a-z]',
  '[',
  ']',
  '',
  "'",
  "''",
  'A',
  'ABC',
  'prod/db/key',
  'prod/key',
  'policy:p',
  'lease:1',
  'ü',
  '🔑',
  'a\nc',
  `${'a'.repeat(200)}b`,
];

/** The definition of a glob: the rest of it is compared with every suffix of the text. */
function globMatches(glob: string, text: string): boolean {
  const [first, ...rest] = glob;
  if (first === undefined) return text === '';
  const [character, ...others] = text;
  if (first === '*') {
    return globMatches(rest.join(''), text) || (character !== undefined && globMatches(glob, others.join('')));
  }
  return (first === '?' ? character !== undefined : first === character) && globMatches(rest.join(''), others.join(''));
}

async function logOf(store: Store, fields: readonly Partial<AuditEntry>[]): Promise<AuditEntry[]> {
  const entries = fields.map((each, index) => anEntry(index + 1, each));
  await commit(store, { entries });
  return entries;
}

export function logContract({ name, newVault }: Subject): void {
  test(`${name}: entries are returned as written, with every field, and null distinct from empty`, async (t) => {
    const store = await newVault(t);
    const odd = 'ü "quoted" \\ \u2028 🔑 \u0001\n';
    const entries = await logOf(store, [
      {},
      { policy_name: '', lease_id: '', reason: '', request_id: '', remote_addr: '' },
      { policy_name: 'p', lease_id: 'l', reason: odd, request_id: 'r', remote_addr: '::1', resource: odd },
    ]);
    assert.deepEqual(await store.run(readEntries(1, 3, 10)), entries);
  });

  test(`${name}: entries are read in a range, oldest first, up to a limit`, async (t) => {
    const store = await newVault(t);
    const entries = await logOf(
      store,
      Array.from({ length: 20 }, () => ({})),
    );
    for (const [from, to, limit] of [
      [1, 20, 100],
      [5, 8, 100],
      [5, 5, 1],
      [5, 20, 3],
      [18, 99, 100],
      [21, 99, 5],
      [8, 5, 5],
      [1, 20, 0],
    ] as const) {
      const expected = entries.slice(from - 1, to).slice(0, limit);
      assert.deepEqual(await store.run(readEntries(from, to, limit)), expected, `${from} to ${to}, ${limit}`);
    }
  });

  test(`${name}: a separate reader sees committed entries, also those committed while it reads`, async (t) => {
    const store = await newVault(t);
    const entries = await logOf(store, [{}, { reason: 'ü 🔑' }, {}]);
    const reader = openLogReader(await store.locateLog());
    t.after(() => reader.close());
    assert.deepEqual(await reader.readEntries(1, 99, 99), entries);
    assert.deepEqual(await reader.readEntries(2, 99, 1), entries.slice(1, 2));
    await commit(store, { entries: [anEntry(4)] });
    assert.deepEqual(await reader.readEntries(3, 4, 9), [...entries.slice(2), anEntry(4)]);
    assert.deepEqual(await reader.readEntries(5, 9, 9), []);
  });

  test(`${name}: a chunk compares a glob with as many entries as their length allows, and with one at least`, async (t) => {
    const store = await newVault(t);
    const { chunkComparisons, chunkEntries } = store.dialect;
    for (const [length, stars, first] of [
      [512, 640, 1],
      [64, 30, 201],
    ] as const) {
      await commit(store, {
        entries: numbersTo(200).map((index) => anEntry(first + index - 1, { resource: 'a'.repeat(length) })),
      });
      const resource = `*${'a'.repeat(stars - 2)}b`;
      const chunks: number[] = [];
      function* watch<T>(procedure: Procedure<T>): Procedure<T> {
        let step = procedure.next();
        while (!step.done) {
          const { parts, values } = step.value;
          const [low, high] = values.map(Number);
          if (/GLOB|LIKE/.test(parts.join(''))) chunks.push(Number(high) - Number(low) + 1);
          step = procedure.next(yield step.value);
        }
        return step.value;
      }
      let from: number | null = first;
      const range = { to: first + 199, order: 'asc' as const };
      while (from !== null) {
        const count = countEntries(store.dialect, { ...NO_FILTER, resource }, { ...range, from }, 1000);
        ({ next: from } = await store.run(watch(count)));
      }
      const most = Math.max(1, Math.floor(chunkComparisons / (length * (stars - 1))));
      assert.equal(Math.max(...chunks), Math.min(200, chunkEntries, most), `${length}, ${stars}`);
    }
  });

  test(`${name}: entries match by agent, action, event and result, exactly and all together`, async (t) => {
    const store = await newVault(t);
    const one = <T>(...values: T[]) => fc.constantFrom(...values);
    const field = fc.record({
      agent_name: one('ci', 'CI', 'ci-1', 'admin'),
      action: one('retrieve', 'list', 'store'),
      event_type: one('credential.retrieve', 'credential.list', 'audit.list'),
      result: one('allowed', 'denied', 'not_found'),
    });
    const entries = await logOf(store, fc.sample(field, 200));
    const filter = fc.record({
      agentName: fc.option(one('ci', 'admin', 'c%', 'nobody')),
      resource: fc.option(one('prod/*', 'dev/*')),
      action: fc.option(one('retrieve', 'list', 'LIST')),
      eventType: fc.option(one('credential.retrieve', 'audit.list')),
      result: fc.option(one('allowed', 'denied', 'error')),
    });
    const range = fc.record({
      from: fc.integer({ min: 1, max: 210 }),
      to: fc.nat(210),
      order: one<'asc' | 'desc'>('asc', 'desc'),
    });
    await fc.assert(
      fc.asyncProperty(filter, range, fc.nat(20), fc.nat(20), async (asked, inRange, offset, limit) => {
        const { from, to, order } = inRange;
        const fitting = entries.filter(
          (entry) =>
            entry.seq >= from &&
            entry.seq <= to &&
            (asked.agentName === null || entry.agent_name === asked.agentName) &&
            (asked.resource === null || asked.resource === 'prod/*') &&
            (asked.action === null || entry.action === asked.action) &&
            (asked.eventType === null || entry.event_type === asked.eventType) &&
            (asked.result === null || entry.result === asked.result),
        );
        const seqs = fitting.map(({ seq }) => seq);
        const ordered = order === 'asc' ? seqs : seqs.toReversed();
        assert.deepEqual(await matchEntries(store, asked, inRange), ordered);
        const page = ordered.slice(offset, offset + limit);
        assert.deepEqual(await matchEntries(store, asked, inRange, offset, limit), page);
      }),
    );
  });

  test(`${name}: in a glob only * and ? are special, in any number and order`, async (t) => {
    const store = await newVault(t);
    const entries = await logOf(
      store,
      RESOURCES.map((resource) => ({ resource })),
    );
    const glob = fc.string({ unit: fc.constantFrom(...'*?abc%_[]\\^.+|()$'), maxLength: 6 });
    const expected = (wanted: string) =>
      entries.filter(({ resource }) => globMatches(wanted, resource)).map(({ seq }) => seq);
    await fc.assert(
      fc.asyncProperty(fc.oneof(glob, fc.constantFrom(...RESOURCES)), async (wanted) => {
        const found = await matchEntries(store, { ...NO_FILTER, resource: wanted }, to(entries.length));
        assert.deepEqual(found, expected(wanted), wanted);
      }),
      runs(100, 300),
    );
  });

  test(`${name}: a glob matches exactly the expected resources`, async (t) => {
    const store = await newVault(t);
    await logOf(
      store,
      RESOURCES.map((resource) => ({ resource })),
    );
    for (const [wanted, fitting] of [
      ['a?c', ['abc', 'aXc', 'a%c', 'a_c', 'a[c', 'a]c', 'a\\c', 'a*c', 'a?c', 'a^c', 'a.c', 'a+c', 'a|c', 'a\nc']],
      ['a_c', ['a_c']],
      ['%', ['%']],
      ['[a-z]', ['[a-z]']],
      ['a[b]c', ['a[b]c']],
      ['a\\c', ['a\\c']],
      ['A', ['A']],
      ['prod/*', ['prod/db/key', 'prod/key']],
      ['prod', []],
      ['', ['']],
      ['*', RESOURCES],
    ] as const) {
      const found = await matchEntries(store, { ...NO_FILTER, resource: wanted }, to(RESOURCES.length));
      assert.deepEqual(
        found.map((seq) => RESOURCES[seq - 1]),
        fitting,
        wanted,
      );
    }
  });

  test(`${name}: a filter with U+0000 matches nothing and is not an error`, async (t) => {
    const store = await newVault(t);
    await logOf(store, [{}, {}]);
    const { agent_name: agentName, resource, action, event_type: eventType, result } = anEntry(1);
    for (const [field, word] of Object.entries({ agentName, resource, action, eventType, result })) {
      for (const wanted of ['\u0000', `${word}\u0000`, `\u0000${word}`, `${word}\u0000${word}`, `*\u0000*`]) {
        const found = await matchEntries(store, { ...NO_FILTER, [field]: wanted }, to(2));
        assert.deepEqual(found, [], `${field}: ${JSON.stringify(wanted)}`);
      }
      assert.deepEqual(await matchEntries(store, { ...NO_FILTER, [field]: word }, to(2)), [1, 2]);
    }
  });

  test(`${name}: a malicious glob terminates`, async (t) => {
    const store = await newVault(t);
    await logOf(
      store,
      Array.from({ length: 50 }, () => ({ resource: 'a'.repeat(512) })),
    );
    for (const wanted of [
      `${'a*'.repeat(300)}b`,
      `${'*a'.repeat(300)}b`,
      `${'*'.repeat(600)}b`,
      `${'?*'.repeat(300)}b`,
    ]) {
      assert.deepEqual(await matchEntries(store, { ...NO_FILTER, resource: wanted }, to(50)), []);
    }
  });

  test(`${name}: the first entry at or after a time is found, across gaps and among equal times`, async (t) => {
    const step = fc.record({ entries: fc.nat(4), gap: fc.nat(3), later: fc.nat(2) });
    const store = await newVault(t);
    const entries: AuditEntry[] = [];
    let [seq, time] = [0, T0];
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const from = time - 1;
        for (const { entries: count, gap, later } of steps) {
          time += later;
          const batch = numbersTo(count).map((n) => anEntry(seq + n, { timestamp: at(time) }));
          seq += count + gap;
          entries.push(...batch);
          await commit(store, { entries: batch, seq });
        }
        for (let wanted = from; wanted <= time + 1; wanted++) {
          const expected = entries.find(({ timestamp }) => timestamp >= at(wanted))?.seq ?? null;
          assert.equal(await store.run(findSeqAt(at(wanted))), expected, `${wanted - T0} ms`);
        }
      }),
      runs(25),
    );
  });
}
