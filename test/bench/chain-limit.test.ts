// One chain's limit, from the costs of its turns.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entriesPerSecond, fitCost } from '../../bench/chain-limit.ts';

test('what a turn costs and what an entry costs are told apart, also where measuring is noisy', () => {
  const noise = [0.1, -0.1, 0.05, -0.05];
  const turns = [4, 16, 32, 64].map((entries, index) => ({ entries, ms: 2 + entries * 0.06 + (noise[index] ?? 0) }));
  const { turnMs, entryMs } = fitCost(turns);
  assert.ok(Math.abs(turnMs - 2) < 0.15 && Math.abs(entryMs - 0.06) < 0.005, `${turnMs} and ${entryMs}`);
});

test("the limit grows with the entries in a turn, and never beyond one entry's own cost", () => {
  const cost = { turnMs: 2, entryMs: 0.05 };
  assert.deepEqual(
    [1, 40, 1_000_000].map((entries) => Math.round(entriesPerSecond(cost, entries))),
    [488, 10_000, 19_999],
  );
});
