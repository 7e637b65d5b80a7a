// The gate in front of work that would take every thread.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Gate } from '../../src/crypto/gate.ts';

/** Claims that twenty pieces of work take three places at a time, in the order in which they came. */
async function assertThreeAtOnce(gate: Gate): Promise<void> {
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
  const results = await Promise.all(numbers.map((number) => gate.pass(work(number))));
  assert.deepEqual(
    results,
    numbers.map((number) => number * 2),
  );
  assert.equal(most, 3);
  assert.deepEqual(begun, numbers);
}

test('no more than its places are taken at once, in the order of the arrival, and every result comes back', () =>
  assertThreeAtOnce(new Gate(3)));

test('it has as many places as before when it was empty in between', async () => {
  const gate = new Gate(3);
  await assertThreeAtOnce(gate);
  await assertThreeAtOnce(gate);
});

test('work that fails gives its place free, and tells its caller alone', async () => {
  const gate = new Gate(1);
  const failing = gate.pass(() => Promise.reject(new Error('broken')));
  const after = gate.pass(() => Promise.resolve('done'));
  await assert.rejects(failing, /broken/);
  assert.equal(await after, 'done');
});
