// What waits for its turn: first come, first served, and never more than fits.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Keys } from '../../src/core/workspace.ts';
import { Queue, type Waiting } from '../../src/vault/queue.ts';
import { SILENT } from './opened.ts';

const MIB = 1024 * 1024;
const REFUSED = { name: 'Fault', code: 'UNAVAILABLE', retryAfterSeconds: 1 };

const waiting = (sizeBytes = 0, keys: Keys = {}): Waiting => ({
  operation: { ...SILENT, sizeBytes, keys },
  settle: () => undefined,
});
const fill = (queue: Queue, count: number, sizeBytes = 0): Waiting[] => {
  const added = Array.from({ length: count }, () => waiting(sizeBytes));
  for (const each of added) queue.add(each);
  return added;
};

test('turns are taken in the order of the arrival, until nothing is left', () => {
  const queue = new Queue();
  const added = fill(queue, 300);
  const taken: Waiting[] = [];
  while (!queue.isEmpty) {
    const turn = queue.takeTurn();
    assert.ok(turn.length >= 1 && turn.length <= 256, `${turn.length} operations in a turn`);
    taken.push(...turn);
  }
  assert.deepEqual(taken, added);
  assert.deepEqual(queue.takeTurn(), []);
});

test('4,096 operations may wait, and one more is refused until a turn is taken', () => {
  const queue = new Queue();
  fill(queue, 4096);
  assert.throws(() => queue.add(waiting()), REFUSED);
  const room = queue.takeTurn().length;
  fill(queue, room);
  assert.throws(() => queue.add(waiting()), REFUSED);
});

test('64 MiB may wait, and what is more is refused until there is room; what is small still comes in', () => {
  const queue = new Queue();
  fill(queue, 255, MIB / 4);
  assert.throws(() => queue.add(waiting(MIB / 4 + 1)), REFUSED);
  fill(queue, 1, MIB / 4);
  assert.throws(() => queue.add(waiting(1)), REFUSED);
  fill(queue, 1, 0);
  queue.takeTurn();
  fill(queue, 1, MIB / 4);
});

test('a turn holds at most 8 MiB, but always one operation', () => {
  const queue = new Queue();
  const added = fill(queue, 50, MIB / 4);
  assert.deepEqual(queue.takeTurn(), added.slice(0, 32));
  const large = new Queue();
  fill(large, 2, 9 * MIB);
  assert.equal(large.takeTurn().length, 1);
  assert.equal(large.takeTurn().length, 1);
});

test('what counts the active leases is the first of its turn, so that its count is exact', () => {
  const queue = new Queue();
  const before = fill(queue, 3);
  const counting = [1, 2].map(() => waiting(0, { activeLeases: { agentName: 'ci', path: null } }));
  for (const each of counting) queue.add(each);
  const after = fill(queue, 2);
  assert.deepEqual(queue.takeTurn(), before);
  assert.deepEqual(queue.takeTurn(), counting.slice(0, 1));
  assert.deepEqual(queue.takeTurn(), [...counting.slice(1), ...after]);
});

test('all that waits can be taken at once, and then there is room for as much again', () => {
  const queue = new Queue();
  const added = fill(queue, 256, MIB / 4);
  assert.deepEqual(queue.takeAll(), added);
  assert.equal(queue.isEmpty, true);
  fill(queue, 256, MIB / 4);
});
