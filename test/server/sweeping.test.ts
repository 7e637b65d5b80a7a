// Sweeping in a running server: in steps, with pauses, until it stops. test/sqlite tests it with a failing disk.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startClock } from '../../src/ledger/clock.ts';
import { startSweeping } from '../../src/server/background-tasks.ts';
import { createLog, type ServerLog, withoutRepetitions } from '../../src/server/log.ts';
import { StoreError } from '../../src/store/errors.ts';
import type { SweepResult } from '../../src/store/stored-data.ts';
import { aLease, commit, KEYS, leased, T0 } from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { keepDatabase, openStore } from '../kit/stores.ts';
import { inFrontOf, until } from '../vault/fixture.ts';

const HEAD = { seq: 0, hmac: 'h', mac: 'm', epoch: 0, tree: '', control: '' };
const DAY_MS = 24 * 3600 * 1000;

/** Sweeps on a store in a later month, `before` each step. */
async function sweepOn(
  t: TestContext,
  before: (steps: number) => unknown,
  leases = 0,
  log: ServerLog = createLog('silent'),
) {
  const directory = temporaryDirectory(t);
  const store = await openStore(directory);
  t.after(() => store.close());
  keepDatabase(t, directory);
  await store.initialise('check', HEAD, 1, KEYS);
  if (leases > 0) {
    const changes = Array.from({ length: leases }, (_, index) => leased(aLease(index + 1, { expiresAt: T0 + 1 })));
    await commit(store, { changes });
  }
  const steps: SweepResult[] = [];
  const watched = inFrontOf(store, {
    async sweep(now, limit) {
      await before(steps.length);
      const swept = await store.sweep(now, limit);
      steps.push(swept);
      return swept;
    },
  });
  const sweeping = startSweeping(watched, startClock(T0 + 30 * DAY_MS), log, (failure) => assert.fail(failure), 1);
  return { steps, sweeping };
}

test('stop waits for the running step and starts no other', async (t) => {
  const [begun, ends] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { steps, sweeping } = await sweepOn(
    t,
    () => {
      begun.resolve();
      return ends.promise;
    },
    4000,
  );
  await begun.promise;
  const stopped = sweeping.stop().then(() => steps.length);
  ends.resolve();
  assert.equal(await stopped, 1);
  assert.equal(steps[0]?.isDone, false);
});

test('a backlog is deleted in steps, with other work between them', async (t) => {
  const order: string[] = [];
  const { steps, sweeping } = await sweepOn(
    t,
    () => {
      order.push('step');
      setTimeout(() => order.push('other work'));
    },
    4000,
  );
  await until(() => steps.some(({ isDone }) => isDone), 'all is swept');
  await sweeping.stop();
  assert.equal(
    steps.reduce((sum, { removed }) => sum + removed, 0),
    4000,
  );
  assert.ok(steps.length >= 8, `${steps.length} steps`);
  const between = order.join().split('step').slice(1, 8);
  assert.ok(
    between.every((part) => part.includes('other work')),
    order.join(),
  );
});

test('an outage of the storage is logged in one line with the reason, and not as a bug', async (t) => {
  const outage = new StoreError('unavailable', 'PostgreSQL: the connection was lost');
  const lines: unknown[][] = [];
  const log: ServerLog = { ...createLog('silent'), error: (...line) => void lines.push(line) };
  const fail = (): never => {
    throw outage;
  };
  const { sweeping } = await sweepOn(t, fail, 0, log);
  await until(() => lines.length > 0, 'a line');
  await sweeping.stop();
  assert.deepEqual(lines[0], ['sweeping failed; the server retries: PostgreSQL: the connection was lost']);
  lines.length = 0;
  const logOften = withoutRepetitions(log.error, 1000);
  const bug = new TypeError('a bug');
  logOften('a batch could not be committed', outage);
  logOften('a batch could not be committed', outage);
  logOften('approvals could not be read', bug);
  assert.deepEqual(lines, [
    ['a batch could not be committed: PostgreSQL: the connection was lost'],
    ['approvals could not be read', bug],
  ]);
});
