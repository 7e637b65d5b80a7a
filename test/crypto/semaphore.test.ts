// The semaphore before work that would occupy every thread.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Semaphore } from '../../src/crypto/signatures.ts';

/** Claims that twenty pieces of work run three places at a time, in the order in which they came. */
async function assertThreeAtOnce(gate: Semaphore): Promise<void> {
  let inside = 0;
  let most = 0;
  const begun: number[] = [];
  const work = (number: number) => async (): Promise<number> => {
    begun.push(number);
    inside += 1;
    most = Math.max(most, inside);
    await sleep(1);
    inside -= 1;
    return number * 2;
  };
  const numbers = Array.from({ length: 20 }, (_, number) => number);
  const results = await Promise.all(numbers.map((number) => gate.run(work(number))));
  assert.deepEqual(
    results,
    numbers.map((number) => number * 2),
  );
  assert.equal(most, 3);
  assert.deepEqual(begun, numbers);
}

test('at most the permitted number of tasks run concurrently, in the order of their arrival, and every result is returned', () =>
  assertThreeAtOnce(new Semaphore(3)));

test('the semaphore has all its places again after it was idle', async () => {
  const gate = new Semaphore(3);
  await assertThreeAtOnce(gate);
  await assertThreeAtOnce(gate);
});

test('failed work releases its place, and rejects only its caller', async () => {
  const gate = new Semaphore(1);
  const failing = gate.run(() => Promise.reject(new Error('broken')));
  const after = gate.run(() => Promise.resolve('done'));
  await assert.rejects(failing, /broken/);
  assert.equal(await after, 'done');
});
