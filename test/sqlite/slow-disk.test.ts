// A disk with slow syncs: only callers that need them wait.

import assert from 'node:assert/strict';
import { fdatasync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startFlood } from '../e2e/overload-process.ts';
import { startProbe } from '../e2e/probe.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';

const PATH = '/api/v1/credentials/demo/key';
const CALLERS = 64;
const MIN_SYNCS = 20;
/** Only a hang reaches it. */
const FLOOD_TIMEOUT_MS = 120_000;
const TICK_MS = 5;

/** A disk of spinning rust behind a busy network: 50 to 200 ms a sync. */
function slowDisk(): { sync(descriptor: number): Promise<void>; syncs(): number } {
  const syncNow = promisify(fdatasync);
  let count = 0;
  return {
    async sync(descriptor) {
      count += 1;
      await sleep(50 + ((count * 37) % 150));
      await syncNow(descriptor);
    },
    syncs: () => count,
  };
}

test('with syncs of 50 to 200 ms callers wait, while health checks and the event loop do not', async (t) => {
  const disk = slowDisk();
  const service = await startTestService(t, [], undefined, disk.sync);
  const agent = await service.agent('ci', { 'demo/*': ['retrieve'] });
  assert.equal((await service.admin.post('/api/v1/credentials', { path: 'demo/key', value: 's3cret' })).status, 201);
  const health = startProbe(t, service.address, '/api/v1/health', null);
  let ticks = 0;
  const ticking = setInterval(() => {
    ticks += 1;
  }, TICK_MS);
  const syncsBefore = disk.syncs();
  const port = Number(new URL(service.address).port);
  const job = {
    port,
    fromAddresses: ['127.0.0.1'],
    connectionsEach: CALLERS,
    ahead: 1,
    token: agent.token,
    path: PATH,
  };
  const callers = startFlood(t, job);
  await until(
    () => disk.syncs() - syncsBefore >= MIN_SYNCS,
    FLOOD_TIMEOUT_MS,
    () => 'the callers cause no syncs',
  );
  const { byStatus } = await callers.end();
  clearInterval(ticking);
  const syncs = disk.syncs() - syncsBefore;
  const checks = health.seen();
  const served = byStatus['200'] ?? 0;
  t.diagnostic(`${served} retrievals, ${checks.length} health checks and ${ticks} ticks in ${syncs} syncs`);
  assert.deepEqual(Object.keys(byStatus), ['200'], 'nobody is refused');
  assert.ok(served <= (syncs + 1) * CALLERS, 'nobody is answered before the disk');
  assert.ok(served > 4 * syncs, 'one sync serves many');
  assert.ok(checks.every(({ status }) => status === 200));
  // What waits for the disk comes once a sync.
  assert.ok(checks.length > 1.5 * syncs, `${checks.length} health checks in ${syncs} syncs`);
  assert.ok(ticks > 3 * syncs, `${ticks} ticks of the event loop in ${syncs} syncs`);
});
