// Sweeping in a running service: in steps, with pauses, until it stops. test/sqlite tests it with a failing disk.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startClock } from '../../src/ledger/clock.ts';
import { startSweeping } from '../../src/server/background-tasks.ts';
import { createLog } from '../../src/server/log.ts';
import type { Store } from '../../src/store/port.ts';
import type { SweepResult } from '../../src/store/store.ts';
import { readHighWaterTime } from '../../src/store/vault-metadata.ts';
import { aLease, commit, KEYS, leased, T0 } from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { keepDatabase, openStore } from '../kit/stores.ts';
import { inFrontOf, until } from '../vault/fixture.ts';

const HEAD = { seq: 0, hmac: 'h', mac: 'm', epoch: 0, tree: '', control: '' };
const HEAD_AT = 1;
const DAY_MS = 24 * 3600 * 1000;

async function sweepOn(t: TestContext, intervalMs = 20) {
  const directory = temporaryDirectory(t);
  const store = await openStore(directory);
  t.after(() => store.close());
  keepDatabase(t, directory);
  await store.initialise('check', HEAD, HEAD_AT, KEYS);
  const broken: unknown[] = [];
  const sweeping = startSweeping(
    store,
    startClock(0),
    createLog('silent'),
    (failure) => broken.push(failure),
    intervalMs,
  );
  t.after(() => sweeping.stop());
  return { store, broken, sweeping };
}

/** A store whose sweep records the time that it gets. */
async function swept(store: Store): Promise<void> {
  while ((await store.run(readHighWaterTime())) <= HEAD_AT) await new Promise((resolve) => setTimeout(resolve, 10));
}

test('stop waits for the running step and starts no other', async (t) => {
  const { store, broken, sweeping } = await sweepOn(t);
  await swept(store);
  await sweeping.stop();
  const seen = await store.run(readHighWaterTime());
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(await store.run(readHighWaterTime()), seen);
  assert.deepEqual(broken, []);
});

test('a backlog is deleted in one sweep, with a pause after each step', async (t) => {
  const { store } = await sweepOn(t, 3_600_000);
  const ended = Array.from({ length: 4000 }, (_, index) => leased(aLease(index + 1, { expiresAt: T0 + 1 })));
  await commit(store, { changes: ended });
  const steps: { startedAt: number; endedAt: number; swept: SweepResult }[] = [];
  const watched = inFrontOf(store, {
    async sweep(now, limit) {
      const startedAt = performance.now();
      const swept = await store.sweep(now, limit);
      steps.push({ startedAt, endedAt: performance.now(), swept });
      return swept;
    },
  });
  const sweeping = startSweeping(watched, startClock(T0 + 30 * DAY_MS), createLog('silent'), () => undefined, 300);
  await until(() => steps.at(-1)?.swept.isDone === true, 'all is swept');
  await sweeping.stop();
  assert.equal(
    steps.reduce((sum, { swept }) => sum + swept.removed, 0),
    4000,
  );
  assert.ok(steps.length >= 8, `${steps.length} steps`);
  const pauses = steps.slice(1).map(({ startedAt }, index) => startedAt - (steps[index]?.endedAt ?? 0));
  // WHY the median: a timer counts from the beginning of the event loop's turn, which under load is some time before.
  const median = pauses.toSorted((a, b) => a - b)[Math.floor(pauses.length / 2)] ?? 0;
  assert.ok(median >= 8, `${median} ms of pause`);
});
