// What facets and counts over time say when the log has many kinds of entries, or the time is up.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CountedKind, countOverTime, sumKinds } from '../../src/vault/audit-counts.ts';
import { columnsOf } from '../../src/vault/log-columns.ts';
import { executeSql } from '../kit/direct-db.ts';
import { admin, openVault, put } from './fixture.ts';
import { ALL, UnhurriedColumns } from './log-without-database.ts';

const AGENTS = 60_000;

test('kinds are summed with a pause for each thousand, and the most frequent values equal those of a whole sort', async () => {
  const kinds = Array.from({ length: 2 * AGENTS }, (_, index): CountedKind => {
    const agentName = `agent-${index % AGENTS}`;
    const result = index < AGENTS ? 'allowed' : 'denied';
    return { kind: { eventType: 'credential.use', action: 'use', agentName, result }, times: (index * 7919) % 997 };
  });
  let pauses = 0;
  const facets = await sumKinds(kinds, { pause: async () => void pauses++ });
  assert.ok(pauses >= (3 * AGENTS) / 1000, `${pauses} pauses`);
  const all = kinds.reduce((sum, { times }) => sum + times, 0);
  assert.deepEqual([facets.counted, facets.eventTypes], [all, [{ value: 'credential.use', count: all }]]);
  const sums = new Map<string, number>();
  for (const { kind, times } of kinds) sums.set(kind.agentName, (sums.get(kind.agentName) ?? 0) + times);
  const wanted = [...sums]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
  assert.deepEqual(facets.agentNames, wanted.slice(0, 50));
});

/** The time for reading is up at an entry. */
class CutColumns extends UnhurriedColumns {
  cutAt = 1;
  override async cover(from: number, to: number): Promise<number> {
    return Math.max(this.cutAt, await super.cover(from, to));
  }
}

test('every entry from counted_from on is counted, also if some of the same millisecond are not', async (t) => {
  const vault = await openVault(t);
  const [length, perMs] = [12, 3];
  for (let number = 0; number < length; number++) await put(vault, `made/${number}`);
  const since = Date.parse('2026-01-01T00:00:00.000Z');
  const times = Array.from({ length }, (_, index) => since + Math.floor(index / perMs));
  const cases = times.map((at, index) => `WHEN ${index + 1} THEN '${new Date(at).toISOString()}'`).join(' ');
  await executeSql(vault.directory, `UPDATE audit_entries SET timestamp = CASE seq ${cases} END`);
  const logColumns = new CutColumns(columnsOf(vault.store));
  t.after(() => logColumns.stop());
  for (let cutAt = 1; cutAt <= length + 1; cutAt++) {
    logColumns.cutAt = cutAt;
    const query = { ...ALL, since, until: since + length / perMs, stepMs: 1 };
    const { isComplete, countedFrom, buckets } = await countOverTime({ ...vault, logColumns }, admin(), query);
    assert.equal(isComplete, cutAt === 1);
    if (cutAt > 1) assert.ok(countedFrom > since, 'not all of the first millisecond is counted');
    for (const { at, entries } of buckets.filter((bucket) => bucket.at >= countedFrom)) {
      assert.equal(entries, times.filter((time) => time === at).length, `cut at ${cutAt}, bucket ${at - since}`);
    }
  }
});
