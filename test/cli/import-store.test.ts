// Tests storing the rows of a plan: bounded concurrency, an outcome for each row, and interrupts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ImportPlan } from '../../src/cli/import/plan.ts';
import { storeAll } from '../../src/cli/import/store.ts';
import { Leasehold } from '../../src/client/leasehold.ts';
import { Secret } from '../../src/core/secret.ts';
import { inParallel } from '../../src/platform/parallel.ts';
import { startTestService } from '../kit/service.ts';

const NEVER = new AbortController().signal;
const planOf = (count: number): ImportPlan => ({
  rows: Array.from({ length: count }, (_, at) => ({
    path: `k/${at}`,
    state: 'new',
    from: 'x',
    reason: null,
    draft: { names: [`${at}`], value: new Secret('hunter2'), type: 'password', description: 'of a test', where: 'x' },
  })),
  skipped: [],
});

test('work runs with bounded concurrency; the first failure is thrown after the running work has ended', async () => {
  let [active, most, done] = [0, 0, 0];
  const items = Array.from({ length: 50 }, (_, at) => at);
  const work = async (): Promise<void> => {
    most = Math.max(most, ++active);
    await new Promise((resolve) => setTimeout(resolve, 1));
    active -= 1;
    done += 1;
  };
  await inParallel(items, 8, work, NEVER);
  assert.deepEqual([most, done, active], [8, 50, 0]);
  done = 0;
  const failing = (item: number): Promise<void> => (item === 5 ? Promise.reject(new Error('five')) : work());
  await assert.rejects(inParallel(items, 8, failing, NEVER), /^Error: five$/);
  assert.ok(done < 20 && active === 0, String(done));
});

test('every row is stored with type and description, and progress reaches its end', async (t) => {
  const service = await startTestService(t);
  const vault = new Leasehold({ address: service.address, token: service.adminToken });
  const seen: number[] = [];
  const plan = planOf(100);
  const progress = (done: number, of: number): void => void seen.push(done / of);
  const { rows: outcomes } = await storeAll(vault, plan, { onlyNew: true, signal: NEVER, progress });
  assert.deepEqual(
    outcomes.map(({ path }) => path),
    plan.rows.map(({ path }) => path),
  );
  assert.ok(outcomes.every(({ state }) => state === 'stored'));
  assert.equal(seen.at(-1), 1);
  const { body } = await service.admin.get('/api/v1/credentials/k/99?view=metadata');
  assert.deepEqual([body.data.type, body.data.description], ['password', 'of a test']);
  const { rows: again } = await storeAll(vault, planOf(3), { onlyNew: true, signal: NEVER, progress });
  assert.deepEqual(
    again.map(({ state }) => state),
    ['exists', 'exists', 'exists'],
  );
});

test('after an interrupt every row has an outcome', async (t) => {
  const service = await startTestService(t);
  const vault = new Leasehold({ address: service.address, token: service.adminToken });
  const controller = new AbortController();
  const progress = (done: number): void => {
    if (done === 20) controller.abort(new Error('interrupted'));
  };
  const { rows: outcomes } = await storeAll(vault, planOf(200), {
    onlyNew: false,
    signal: controller.signal,
    progress,
  });
  const count = (result: string): number => outcomes.filter((outcome) => outcome.state === result).length;
  assert.equal(count('stored') + count('not tried'), 200);
  assert.ok(count('stored') >= 20 && count('stored') <= 28, String(count('stored')));
  const { body } = await service.admin.get('/api/v1/credentials');
  assert.equal(body.data.length, count('stored'));
});

test('when the service is unreachable, the rest is not tried', async (t) => {
  const service = await startTestService(t);
  const vault = new Leasehold({ address: service.address, token: service.adminToken, retries: 0 });
  await service.stop();
  const { rows: outcomes } = await storeAll(vault, planOf(100), {
    onlyNew: false,
    signal: NEVER,
    progress: () => undefined,
  });
  assert.ok(outcomes.filter(({ state }) => state === 'failed').length <= 8);
  assert.ok(outcomes.every(({ state }) => state === 'failed' || state === 'not tried'));
  assert.match(outcomes[0]?.reason ?? '', /UNREACHABLE\); it may have been stored$/);
});
