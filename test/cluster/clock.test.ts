// The database's clock decides: a node whose clock is off by more than a minute does not start; others use that clock.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { newDatabase } from '../kit/database.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

test('a node whose clock is off by more than a minute does not start and names the difference', async (t) => {
  const clock = startTestClock(t);
  const database = ['--database', await newDatabase(t)];
  // This process's clock stands still from the move on, so the difference changes until it is measured.
  for (const [seconds, line] of [
    [90, /This node's clock is (?:[6-8]\d|90) seconds ahead of the database's\. Set it to the correct time\./],
    [-90, /This node's clock is (?:9\d|1[01]\d) seconds behind the database's\. Set it to the correct time\./],
  ] as const) {
    await clock.move(seconds * 1000);
    await assert.rejects(startTestService(t, database, join(temporaryDirectory(t), 'data')), line);
    await clock.move(-seconds * 1000);
  }
});

/** The clocks of this process and the database may be read a moment apart. */
function assertBetween(time: number, from: number, to: number): void {
  assert.ok(time > from - 1000 && time < to + 1000, `${time} is not between ${from} and ${to}`);
}

test("a node whose clock is off by less uses the database's time", async (t) => {
  const real = Date.now() - performance.now();
  const now = () => real + performance.now();
  const startedAt = now();
  const clock = startTestClock(t);
  await clock.move(50_000);
  const service = await startTestService(t, ['--database', await newDatabase(t)]);
  const { created_at } = (await service.admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).body.data;
  assertBetween(Date.parse(created_at), startedAt, now());
  const { expires_at } = (await service.admin.get('/api/v1/credentials/a?ttl=100')).body.data;
  assertBetween(Date.parse(expires_at) - 100_000, startedAt, now());
  // An hour later by its own clock, nothing has ended.
  await clock.move(3_600_000);
  const [lease] = (await service.admin.get('/api/v1/leases')).body.data;
  assert.equal(lease.status, 'active');
  // The service must stop before its database is dropped.
  await service.stop();
});
