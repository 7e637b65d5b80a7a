// The columns of the log in memory: what is read when, and what is said about it when the time is up.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EntryColumns } from '../../src/store/log-columns.ts';
import type { AuditFilter } from '../../src/store/queries.ts';
import { visitMatches } from '../../src/vault/audit.ts';
import { LogColumns, MAX_ENTRIES } from '../../src/vault/log-columns.ts';

const KIND = { eventType: 'credential.retrieve', action: 'retrieve', agentName: 'ci', result: 'allowed' };
const ALL = { agentName: null, resource: null, action: null, eventType: null, result: null };
const FOREVER = Number.POSITIVE_INFINITY;

const isoOf = (seq: number): string => new Date(seq).toISOString();

/** A log without a database: each entry's time is its number. It counts the entries that were read. */
interface Texts {
  readonly toTimestamp?: (seq: number) => string;
  readonly toResource?: (seq: number) => string;
  readonly toAgent?: (seq: number) => string;
}

function startLog(stepRows: number, { toTimestamp = isoOf, toResource = () => 'a', toAgent = () => 'ci' }: Texts = {}) {
  let [read, matched] = [0, 0];
  const store: ConstructorParameters<typeof LogColumns>[0] = {
    async matchEntries({ resource }, from, to) {
      const seqs = Array.from({ length: to - from + 1 }, (_, index) => from + index);
      matched += seqs.length;
      return { seqs: seqs.filter((seq) => toResource(seq) === resource), next: null };
    },
    async readColumns(from, to, order) {
      const [low, high] =
        order === 'asc' ? [from, Math.min(to, from + stepRows - 1)] : [Math.max(from, to - stepRows + 1), to];
      const rows: EntryColumns[] = [];
      for (let seq = low; seq <= high; seq++) {
        rows.push({
          seq,
          timestamp: toTimestamp(seq),
          resource: toResource(seq),
          kind: { ...KIND, agentName: toAgent(seq) },
        });
      }
      read += rows.length;
      const next = order === 'asc' ? high + 1 : low - 1;
      return { rows, next: next > to || next < from ? null : next };
    },
  };
  const columns = new LogColumns(store);
  const visited = async (from: number, to: number, order: 'asc' | 'desc', filter: AuditFilter = ALL) => {
    const seqs: number[] = [];
    await columns.visit({ from, to, order }, filter, (_, at, seq) => {
      if (at !== Date.parse(toTimestamp(seq))) assert.fail(`entry ${seq} has the time ${at}`);
      seqs.push(seq);
    });
    return seqs;
  };
  return { store, columns, visited, read: () => read, matched: () => matched };
}

test('each entry is read once, from the end, and new ones when they are needed', async () => {
  const { columns, visited, read, matched } = startLog(7);
  assert.equal(await columns.cover(50, 100, FOREVER), 50);
  assert.equal(read(), 51);
  assert.equal(await columns.cover(60, 90, FOREVER), 60);
  assert.equal(read(), 51);
  assert.equal(await columns.cover(1, 120, FOREVER), 1);
  assert.equal(read(), 120);
  const all = Array.from({ length: 120 }, (_, index) => index + 1);
  assert.deepEqual(await visited(1, 120, 'asc'), all);
  assert.deepEqual(await visited(3, 5, 'desc'), [5, 4, 3]);
  assert.deepEqual(await visited(3, 5, 'asc', { ...ALL, resource: '*', result: 'allowed' }), [3, 4, 5]);
  assert.deepEqual(await visited(1, 9, 'asc', { ...ALL, result: 'denied' }), []);
  assert.deepEqual(await visited(1, 9, 'asc', { ...ALL, resource: 'b*' }), []);
  assert.equal(matched(), 0, 'every resource is in memory');
  await columns.stop();
});

test('when the time is up, it says from where on entries are in memory, and reads on', async () => {
  const { columns, read } = startLog(10);
  assert.equal(await columns.cover(1, 100, 0), 101);
  await columns.stop();
  assert.ok(read() <= 10, 'a stop ends the reading');
  const other = startLog(10);
  await other.columns.cover(1, 100, 0);
  while (other.read() < 100) await new Promise(setImmediate);
  assert.equal(await other.columns.cover(1, 100, 0), 1);
});

test('the oldest entries are dropped, and never more are held than the limit', async () => {
  const { columns, visited } = startLog(100_000, { toTimestamp: () => '2026-01-01T00:00:00.000Z' });
  const end = MAX_ENTRIES + 10_000;
  const low = await columns.cover(1, end, FOREVER);
  assert.ok(low > 10_000 - 4096 && low <= 10_000 + 4096, String(low));
  assert.equal((await visited(low, end, 'asc')).length, end - low + 1);
  // A range before them is not in memory, and does not remove the newest.
  assert.equal(await columns.cover(1, 500, FOREVER), 501);
  const later = await columns.cover(low, end + 20_000, FOREVER);
  assert.ok(later > low, String(later));
  assert.equal((await visited(later, end + 20_000, 'desc')).length, end + 20_000 - later + 1);
  await columns.stop();
});

test('a filtered list, oldest first, has every entry although memory drops some while the database is scanned', async () => {
  const { store, columns } = startLog(100_000, { toTimestamp: () => '2026-01-01T00:00:00.000Z' });
  const end = MAX_ENTRIES + 10_000;
  let newest = end;
  const growing: typeof store = {
    ...store,
    async matchEntries(filter, from, to, order) {
      if (newest === end) {
        newest += 20_000;
        await columns.cover(end, newest, FOREVER);
      }
      return store.matchEntries(filter, from, to, order);
    },
  };
  const query = { ...ALL, resource: 'a', since: null, until: null, after: 0, before: null, order: 'asc' as const };
  let next = 1;
  await visitMatches({ store: growing, logColumns: columns }, { from: 1, to: end }, query, (seq) => {
    if (seq !== next) assert.fail(`entry ${seq} follows ${next - 1}`);
    next += 1;
  });
  assert.equal(next, end + 1);
  assert.ok((await columns.cover(1, newest, FOREVER)) > 10_000 + 4096, 'memory has dropped entries');
});

test('resources beyond the limit are matched in the database, block by block', async () => {
  const { columns, visited, matched } = startLog(10_000, { toResource: (seq) => `lease:${seq}` });
  const length = 120_000;
  assert.equal(await columns.cover(1, length, FOREVER), 1);
  // The newest 100,000 are in memory, because they were read first.
  assert.deepEqual(await visited(1, length, 'desc', { ...ALL, resource: `lease:${length - 1}` }), [length - 1]);
  assert.deepEqual(await visited(1, length, 'asc', { ...ALL, resource: 'lease:5' }), [5]);
  assert.deepEqual(await visited(5, 30_000, 'desc', { ...ALL, resource: 'lease:20000' }), [20_000]);
  assert.ok(matched() > 0 && matched() <= 3 * (20_000 + 2 * 4096), String(matched()));
});

test('with too many different callers, only what was read before is in memory', async () => {
  const { columns, visited } = startLog(10_000, { toAgent: (seq) => `agent-${seq}` });
  const length = 250_000;
  const low = await columns.cover(1, length, FOREVER);
  assert.ok(low > 1 && low <= length - 200_000 + 1, String(low));
  assert.deepEqual(await visited(low, length, 'asc', { ...ALL, agentName: `agent-${low}` }), [low]);
  assert.equal(await columns.cover(1, length + 1, FOREVER), length + 2, 'later entries are not read either');
});
