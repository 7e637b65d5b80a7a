// Every value of a large vault is sealed again under load, while the service is killed again and again: no value is
// lost and no request fails. LEASEHOLD_TEST_CREDENTIALS and LEASEHOLD_TEST_KILLS set the sizes. How long callers waited
// is printed.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fillStore } from '../../bench/fixtures.ts';
import { startGenerator } from '../../bench/generator.ts';
import { type Client, createClient } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { openStore, STORE } from '../kit/stores.ts';

const CREDENTIALS = Number(process.env['LEASEHOLD_TEST_CREDENTIALS'] ?? 20_000);
const KILLS = Number(process.env['LEASEHOLD_TEST_KILLS'] ?? 5);
const PER_SECOND = Number(process.env['LEASEHOLD_TEST_RATE'] ?? 200);
const SIZES = { credentials: CREDENTIALS, policies: 100, agents: 64, entries: CREDENTIALS };
const SECONDS = CREDENTIALS > 100_000 ? 5 : 2;
const BASELINES = 5;
const LOAD = { kind: 'paced', connections: 32, perSecond: PER_SECOND, seconds: SECONDS } as const;

/** Stores versions of a few paths until a request fails; the newest acknowledged one of each is in `stored`. */
async function storeUntilKilled(admin: Client, stored: Map<string, string>, from: number): Promise<void> {
  for (let n = from; ; n++) {
    const path = `stored/${n % 50}`;
    try {
      const { status } = await admin.post('/api/v1/credentials', { path, value: `value ${n}` });
      assert.equal(status, 201);
      stored.set(path, `value ${n}`);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      // Whether it happened is not known.
      stored.delete(path);
      return;
    }
  }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** Of the p99 of each load: the medians, and the longest ones. */
function describe({ before, during }: Readonly<Record<'before' | 'during', readonly number[]>>): string {
  const [one, other] = [before, during].map(
    (values) => `${median(values).toFixed(1)} (at most ${Math.max(...values, 0).toFixed(1)})`,
  );
  return `${one} → ${other} ms`;
}

test(`${CREDENTIALS} values are sealed again under load, with ${KILLS} kills`, { timeout: 3_600_000 }, async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  await (await startProcess(t, dataDir)).end('SIGTERM');
  await fillStore(await openStore(dataDir), join(dataDir, 'root.key'), SIZES);
  let service = await startProcess(t, dataDir);
  const generator = startGenerator(t);
  const load = () => {
    const target = { address: service.address, credentials: SIZES.credentials, agents: SIZES.agents };
    return generator.run({ ...LOAD, target });
  };
  const stored = new Map<string, string>();
  // WHY two comparisons: a service that has just started is slower.
  const afterKills = { before: [] as number[], during: [] as number[] };
  const running = { before: [] as number[], during: [] as number[] };
  for (let n = 0; n < BASELINES; n++) running.before.push((await load()).p99Ms);
  for (let n = 0; n < BASELINES; n++) {
    await service.end('SIGKILL');
    service = await startProcess(t, dataDir);
    afterKills.before.push((await load()).p99Ms);
  }
  let admin = createClient(service.address, service.adminToken);
  assert.equal((await admin.post('/api/v1/key/rotate', { key: 'data' })).status, 200);
  const startedAt = performance.now();
  for (let kill = 0; kill < KILLS; kill++) {
    // The generator fails the run at any response that is not 200.
    (kill === 0 ? running : afterKills).during.push((await load()).p99Ms);
    const storing = storeUntilKilled(admin, stored, kill * 10_000);
    await sleep(50 + Math.random() * 200);
    await service.end('SIGKILL');
    await storing;
    service = await startProcess(t, dataDir);
    admin = createClient(service.address, service.adminToken);
  }
  const isOver = async () => (await admin.get('/api/v1/audit?event_type=key.retire')).body.data.length > 0;
  const wasOver = await isOver();
  while (!(await isOver())) running.during.push((await load()).p99Ms);
  const seconds = (performance.now() - startedAt) / 1000;
  const { valid, state } = (await admin.get('/api/v1/audit/verify?values=true')).body.data;
  assert.deepEqual([valid, state.problems], [true, []]);
  assert.ok(state.checked >= CREDENTIALS);
  for (const [path, value] of stored) {
    assert.equal((await admin.get(`/api/v1/credentials/${path}`)).body.data.value, value);
  }
  t.diagnostic(
    `${STORE}: ${CREDENTIALS} values in ${seconds.toFixed(0)} s, ${KILLS} kills${wasOver ? ', over before the last' : ''}; ` +
      `retrievals at ${PER_SECOND}/s: p99 ${describe(running)}; after each kill ${describe(afterKills)}`,
  );
});
