// The columns of the log in memory: what is read when, and what is said about it when the time is up.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Dialect } from '../../src/store/dialect.ts';
import { type Procedure, raw, type Statement } from '../../src/store/statement.ts';
import { visitMatches } from '../../src/vault/audit.ts';
import { MAX_ENTRIES } from '../../src/vault/log-columns.ts';
import { ALL, FOREVER, startLog } from './log-without-database.ts';

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
  const query = { ...ALL, resource: 'a', since: null, until: null, after: 0, before: null, order: 'asc' as const };
  const growing = {
    dialect: { matchesGlob: () => raw('') } as unknown as Dialect,
    async run<T>(matching: Procedure<T>): Promise<T> {
      if (newest === end) {
        newest += 20_000;
        await columns.cover(end, newest, FOREVER);
      }
      const [from, to] = (matching.next().value as Statement).values;
      return (await store.matchEntries(query, Number(from), Number(to), 'asc')) as T;
    },
  };
  let next = 1;
  await visitMatches({ store: growing, logColumns: columns }, { from: 1, to: end }, query, (seq) => {
    if (seq !== next) assert.fail(`entry ${seq} follows ${next - 1}`);
    next += 1;
  });
  assert.equal(next, end + 1);
  assert.ok((await columns.cover(1, newest, FOREVER)) > 10_000 + 4096, 'memory has dropped entries');
});
