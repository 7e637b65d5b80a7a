// A disk with slow syncs: only callers that need them wait.

import assert from 'node:assert/strict';
import { fdatasync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startFlood } from '../e2e/overload-process.ts';
import { type Probe, startProbe } from '../e2e/probe.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';

const PATH = '/api/v1/credentials/demo/key';
const CALLERS = 64;
const MIN_SYNCS = 20;
/** Only a hang reaches it. */
const FLOOD_TIMEOUT_MS = 120_000;
const TICK_MS = 5;

/** A disk of spinning rust behind a busy network: 50 to 200 ms a sync, and until what `begin` returns has resolved. */
function slowDisk(begin: () => Promise<void>): { sync(descriptor: number): Promise<void>; syncs(): number } {
  const syncNow = promisify(fdatasync);
  let count = 0;
  return {
    async sync(descriptor) {
      count += 1;
      const meanwhile = begin();
      await sleep(50 + ((count * 37) % 150));
      await meanwhile;
      await syncNow(descriptor);
    },
    syncs: () => count,
  };
}

test('with syncs of 50 to 200 ms callers wait, while health checks and the event loop do not', async (t) => {
  let health: Probe | null = null;
  let ticks = 0;
  // WHY not counted in all: on a busy machine several syncs may pass in one turn of the event loop.
  const disk = slowDisk(async () => {
    const checks = health?.seen().length ?? 0;
    const ticksBefore = ticks;
    await until(
      () => health === null || (health.seen().length >= checks + 2 && ticks >= ticksBefore + 3),
      FLOOD_TIMEOUT_MS,
      () => 'health checks or the event loop wait for the disk',
    );
  });
  const service = await startTestService(t, [], undefined, disk.sync);
  const agent = await service.agent('ci', { 'demo/*': ['retrieve'] });
  assert.equal((await service.admin.post('/api/v1/credentials', { path: 'demo/key', value: 's3cret' })).status, 201);
  const ticking = setInterval(() => {
    ticks += 1;
  }, TICK_MS);
  const probe = startProbe(t, service.address, '/api/v1/health', null);
  health = probe;
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
  const callers = await startFlood(t, job);
  await until(
    () => disk.syncs() - syncsBefore >= MIN_SYNCS,
    FLOOD_TIMEOUT_MS,
    () => 'the callers cause no syncs',
  );
  const { byStatus } = await callers.end();
  health = null;
  clearInterval(ticking);
  const syncs = disk.syncs() - syncsBefore;
  const checks = probe.seen();
  const served = byStatus['200'] ?? 0;
  t.diagnostic(`${served} retrievals, ${checks.length} health checks and ${ticks} ticks in ${syncs} syncs`);
  assert.deepEqual(Object.keys(byStatus), ['200'], 'no request is rejected');
  assert.ok(served <= (syncs + 1) * CALLERS, 'no response precedes its sync');
  assert.ok(served > 4 * syncs, 'one sync serves many');
  // During each sync at least two were answered, since it ends only then.
  assert.ok(checks.length > syncs && checks.every(({ status }) => status === 200), `${checks.length} health checks`);
});
