/** How the threads of a verification share the log, and how they throttle. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { RANGE_ENTRIES, STEP_ENTRIES, WorkQueue } from '../../src/vault/verification/work-queue.ts';

test('every entry is in exactly one range, and ranges are taken in the order of the log by any thread', () => {
  for (const lastSeq of [1, RANGE_ENTRIES - 1, RANGE_ENTRIES, RANGE_ENTRIES + 1, 5 * RANGE_ENTRIES + 7]) {
    const shares = [new WorkQueue(lastSeq)];
    shares.push(new WorkQueue(lastSeq, shares[0]?.numbers));
    let next = 1;
    for (let turn = 0; ; turn++) {
      const range = shares[turn % 2]?.take() ?? null;
      if (range === null) break;
      assert.equal(range.fromSeq, next);
      assert.equal(range.toSeq > next || lastSeq === next, true);
      next = range.toSeq + 1;
    }
    assert.equal(next, lastSeq + 1);
    for (const share of shares) assert.equal(share.take(), null);
  }
});

test('after a break no range behind it is taken, and after the end none is taken', () => {
  const closed = new WorkQueue(5 * RANGE_ENTRIES);
  assert.notEqual(closed.take(), null);
  closed.stopTaking();
  assert.deepEqual([closed.take(), closed.isOver], [null, false]);
  const ended = new WorkQueue(5 * RANGE_ENTRIES);
  ended.cancel();
  assert.deepEqual([ended.take(), ended.isOver], [null, true]);
});

test('progress is reported in steps and never exceeds the total', () => {
  const share = new WorkQueue(STEP_ENTRIES + 1);
  const seen = [share.checked];
  for (let step = 0; step < 2; step++) {
    share.stepDone();
    seen.push(share.checked);
  }
  assert.deepEqual(seen, [0, STEP_ENTRIES, STEP_ENTRIES + 1]);
});

/** Milliseconds that a thread paused after a step of `stepMs`; `meanwhile` runs when the pause has begun. */
async function restIn(share: WorkQueue, stepMs: number, meanwhile: () => void = () => undefined): Promise<number> {
  const url = JSON.stringify(new URL('../../src/vault/verification/work-queue.ts', import.meta.url).href);
  const code = `const { workerData, parentPort } = require('node:worker_threads');
    import(${url}).then(({ WorkQueue }) => {
      const share = new WorkQueue(1, workerData);
      parentPort.postMessage('begins');
      const startedAt = performance.now();
      share.throttle(${stepMs});
      parentPort.postMessage(performance.now() - startedAt);
    });`;
  const worker = new Worker(code, { eval: true, workerData: share.numbers });
  return new Promise((resolve, reject) => {
    worker.on('error', reject);
    worker.on('message', (message) => (typeof message === 'number' ? resolve(message) : setTimeout(meanwhile, 20)));
  });
}

test('a thread pauses longer than it worked while the service is busy, and does not pause otherwise', async () => {
  const share = new WorkQueue(1);
  assert.equal((await restIn(share, 60_000)) < 60_000, true);
  share.setBusy(true);
  assert.equal((await restIn(share, 20)) >= 40, true);
});

test('a pause ends when the service is idle, or after its time', async () => {
  for (const change of [(share: WorkQueue) => share.setBusy(false), (share: WorkQueue) => share.cancel()]) {
    const share = new WorkQueue(1);
    share.setBusy(true);
    assert.equal((await restIn(share, 60_000, () => change(share))) < 60_000, true);
  }
});
