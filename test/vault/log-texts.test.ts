// The texts of the log in memory: how many may be different, and what filters by them cost.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LogColumns, MAX_ENTRIES } from '../../src/vault/log-columns.ts';
import { assertGrowth } from '../kit/growth.ts';
import { ALL, FOREVER, startLog } from './log-without-database.ts';

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

const uuidOf = (seq: number): string => `019d2e93-1994-7e10-8a5c-${String(seq).padStart(12, '0')}`;

test('resources with ids are in memory however many there are, and other globs do not test them', async () => {
  const toResource = (seq: number): string => {
    if (seq % 4 === 0) return `${seq % 8 === 0 ? 'lease' : 'approval'}:${uuidOf(seq)}`;
    return seq % 4 === 1 ? `lease:${uuidOf(seq).toUpperCase()}` : 'prod/key';
  };
  const length = 220_000;
  const texts = Array.from({ length: length + 1 }, (_, seq) => toResource(seq));
  const { columns, visited, matched } = startLog(10_000, { toResource: (seq) => texts[seq] ?? '' });
  assert.equal(await columns.cover(1, length, FOREVER), 1);
  const beginning = '019d2e93-1994-7e10-8a5c-0000001';
  for (const [resource, expected] of Object.entries<RegExp>({
    [`lease:${uuidOf(160_000)}`]: new RegExp(`^lease:${uuidOf(160_000)}$`),
    [`approval:${uuidOf(160_000)}`]: /^none$/,
    'prod/*': /^prod/,
    'lease:*': /^lease:/,
    'ap*': /^ap/,
    '*': /^/,
    '**?': /^/,
    [`l*:${beginning}*`]: new RegExp(`^l.*:${beginning}`),
    'approval:*01?': /^approval:.*01.$/,
    '*-8?5*44': /-8.5.*44$/,
  })) {
    const found = await visited(1, length, 'asc', { ...ALL, resource });
    const wanted = [...texts.keys()].filter((seq) => seq > 0 && expected.test(texts[seq] ?? ''));
    assert.equal(found.length, wanted.length, resource);
    const different = found.findIndex((seq, index) => seq !== wanted[index]);
    assert.equal(different, -1, resource);
  }
  assert.equal(matched(), 0, 'no entry is matched in the database');
});

test('the texts of dropped entries make room for others', async () => {
  const before = 80_000;
  const toResource = (seq: number): string => (seq <= before || seq > MAX_ENTRIES ? `p/${seq}` : 'a');
  const toTimestamp = () => '2026-01-01T00:00:00.000Z';
  const { columns, visited, matched } = startLog(10_000, { toResource, toTimestamp });
  await columns.cover(1, MAX_ENTRIES, FOREVER);
  const end = MAX_ENTRIES + 90_000;
  const low = await columns.cover(before, end, FOREVER);
  assert.deepEqual(await visited(low, end, 'asc', { ...ALL, resource: `p/${end - 1}` }), [end - 1]);
  assert.deepEqual(await visited(low, end, 'asc', { ...ALL, resource: `p/${MAX_ENTRIES + 1}` }), [MAX_ENTRIES + 1]);
  assert.equal((await visited(low, end, 'desc', { ...ALL, resource: 'p/*' })).length, 90_000);
  assert.equal(matched(), 0, 'every resource is in memory');
});

test('a number of a kind means the same until the visit has ended', async () => {
  // The kinds of dropped entries are given again to new ones.
  const toAgent = (seq: number): string =>
    `agent-${seq <= 8192 ? 'old' : seq > MAX_ENTRIES ? Math.floor(seq / 4096) : 'ci'}`;
  const { columns } = startLog(5000, { toAgent, toTimestamp: () => '2026-01-01T00:00:00.000Z' });
  await columns.cover(1, MAX_ENTRIES, FOREVER);
  const names: (string | undefined)[] = [];
  const end = MAX_ENTRIES + 20_000;
  let reading: Promise<unknown> | null = null;
  await columns.visit({ from: 1, to: MAX_ENTRIES, order: 'desc' }, { ...ALL, agentName: 'agent-old' }, (kind) => {
    names.push(columns.kind(kind)?.agentName);
  });
  assert.deepEqual([...new Set(names)], ['agent-old']);
  names.length = 0;
  await columns.visit({ from: 1, to: MAX_ENTRIES, order: 'desc' }, ALL, (kind, _, seq) => {
    reading ??= columns.cover(1, end, FOREVER);
    if (seq <= 8192) names.push(columns.kind(kind)?.agentName);
  });
  await reading;
  assert.deepEqual([names.length, [...new Set(names)]], [4097, ['agent-old']]);
  assert.ok(columns.kinds().every(({ agentName }) => agentName !== 'agent-old'));
});

test('with too many different callers, the newest entries are in memory', async () => {
  const { columns, visited, read } = startLog(10_000, { toAgent: (seq) => `agent-${seq}` });
  const length = 250_000;
  const low = await columns.cover(1, length, FOREVER);
  assert.ok(low > 1 && low <= length - 180_000 + 1, String(low));
  assert.deepEqual(await visited(low, length, 'asc', { ...ALL, agentName: `agent-${low}` }), [low]);
  const end = length + 150_000;
  const later = await columns.cover(1, end, FOREVER);
  assert.ok(later > low && later <= end - 180_000 + 1, String(later));
  assert.deepEqual(await visited(later, end, 'asc', { ...ALL, agentName: `agent-${end}` }), [end]);
  assert.equal((await visited(later, end, 'desc')).length, end - later + 1);
  const before = read();
  assert.equal(await columns.cover(1, end + 1, FOREVER), later);
  assert.equal(read(), before + 1, 'no older entry is read again');
});

test('a visit ends within a block if its time is up, and says how far it came', async () => {
  const toResource = (seq: number): string => `${'a'.repeat(400)}/${seq}`;
  const { columns } = startLog(10_000, { toResource });
  const [from, to] = [4096, 8191];
  await columns.cover(from, to, FOREVER);
  // Takes long for each resource, and matches every one.
  const filter = { ...ALL, resource: `*${'a'.repeat(200)}*/*` };
  for (const order of ['asc', 'desc'] as const) {
    const seqs: number[] = [];
    const reached = await columns.visit(
      { from, to, order },
      filter,
      (_kind, _at, seq) => seqs.push(seq),
      performance.now() + 1,
    );
    assert.ok(order === 'asc' ? reached < to : reached > from, `${order}: ${reached}`);
    assert.equal(seqs.at(-1) ?? reached, reached);
    assert.equal(seqs.length, order === 'asc' ? reached - from + 1 : to - reached + 1);
  }
});

test('a visit of a few entries costs the same however many kinds the log has', async () => {
  const logs = new Map<number, LogColumns>();
  for (const kinds of [5000, 150_000]) {
    const { columns } = startLog(10_000, { toAgent: (seq) => `agent-${seq}` });
    await columns.cover(1, kinds, FOREVER);
    logs.set(kinds, columns);
  }
  const visit = (kinds: number): void => {
    // Until its first pause, a visit runs immediately.
    for (let times = 0; times < 100; times++) {
      void logs.get(kinds)?.visit({ from: 1, to: 5, order: 'asc' }, { ...ALL, agentName: 'agent-3' }, () => undefined);
    }
  };
  assertGrowth(visit, { small: 5000, times: 30, limit: 10 });
});
