// Operations that wait for a batch: each caller has a queue, batches are filled from all queues, and the whole is
// bounded.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OperationAuth } from '../../src/core/identity.ts';
import type { AgentName, TokenHash } from '../../src/core/names.ts';
import { FairQueue, fairnessKeyOf, type QueuedOperation } from '../../src/ledger/fair-queue.ts';
import { SILENT } from '../vault/fixture.ts';

const MIB = 1024 * 1024;
const REFUSED = { name: 'ApiError', code: 'UNAVAILABLE', retryAfterSeconds: 1 };

const agent = (name: string): OperationAuth => ({
  kind: 'session',
  tokenHash: 'hash' as TokenHash,
  agentName: name as AgentName,
});
const waiting = (sizeBytes = 0, origin = 'ci'): QueuedOperation => ({
  operation: { ...SILENT, auth: agent(origin) },
  sizeBytes,
  settle: () => undefined,
});
const fill = (queue: FairQueue, count: number, sizeBytes = 0, origin = 'ci'): QueuedOperation[] => {
  const added = Array.from({ length: count }, () => waiting(sizeBytes, origin));
  for (const each of added) queue.add(each);
  return added;
};

test('the operations of one caller are taken in the order of their arrival, until none is left', () => {
  const queue = new FairQueue();
  const added = fill(queue, 300);
  const taken: QueuedOperation[] = [];
  while (!queue.isEmpty) {
    const turn = queue.takeBatch();
    assert.ok(turn.length >= 1 && turn.length <= 256, `${turn.length} operations in a batch`);
    taken.push(...turn);
  }
  assert.deepEqual(taken, added);
  assert.deepEqual(queue.takeBatch(), []);
});

test('1,024 operations may wait, and one more is rejected until a batch is taken', () => {
  const queue = new FairQueue();
  fill(queue, 1024);
  assert.throws(() => queue.add(waiting()), REFUSED);
  const room = queue.takeBatch().length;
  fill(queue, room);
  assert.throws(() => queue.add(waiting()), REFUSED);
});

test('64 MiB may wait; more is rejected until there is room, and a small operation is still accepted', () => {
  const queue = new FairQueue();
  fill(queue, 255, MIB / 4);
  assert.throws(() => queue.add(waiting(MIB / 4 + 1)), REFUSED);
  fill(queue, 1, MIB / 4);
  assert.throws(() => queue.add(waiting(1)), REFUSED);
  fill(queue, 1, 0);
  queue.takeBatch();
  fill(queue, 1, MIB / 4);
});

test('a batch holds at most 8 MiB, but always one operation', () => {
  const queue = new FairQueue();
  const added = fill(queue, 50, MIB / 4);
  assert.deepEqual(queue.takeBatch(), added.slice(0, 32));
  const large = new FairQueue();
  fill(large, 2, 9 * MIB);
  assert.equal(large.takeBatch().length, 1);
  assert.equal(large.takeBatch().length, 1);
});

test('all waiting operations can be taken together, which frees all the room', () => {
  const queue = new FairQueue();
  const added = fill(queue, 256, MIB / 4);
  assert.deepEqual(queue.takeAll(), added);
  assert.equal(queue.isEmpty, true);
  fill(queue, 256, MIB / 4);
});

const keyOf = ({ operation }: QueuedOperation): string => fairnessKeyOf(operation.auth);
/** The keys in the order in which the operations are taken. */
const originsOf = (turn: readonly QueuedOperation[]): string => turn.map(keyOf).join(' ');

test('a caller with one operation is served in the next batch, however many of another caller wait', () => {
  const queue = new FairQueue();
  fill(queue, 1000, 0, 'flood');
  fill(queue, 2, 0, 'ci');
  fill(queue, 1, 0, 'deploy');
  const turn = queue.takeBatch();
  assert.equal(turn.length, 64, 'the batch is full');
  assert.equal(originsOf(turn.slice(0, 6)), 'flood ci deploy flood ci flood');
});

test('a batch continues where the last one ended, so that many callers are served equally', () => {
  const queue = new FairQueue();
  for (let line = 0; line < 100; line++) fill(queue, 3, 0, `agent-${line}`);
  const counts = new Map<string, number>();
  for (let turn = 0; turn < 3; turn++) {
    for (const each of queue.takeBatch()) counts.set(keyOf(each), (counts.get(keyOf(each)) ?? 0) + 1);
  }
  assert.equal(counts.size, 100);
  assert.ok([...counts.values()].every((count) => count === 1 || count === 2));
});

test('a caller that is alone gets whole batches', () => {
  const queue = new FairQueue();
  fill(queue, 200, 0, 'ci');
  assert.deepEqual([queue.takeBatch().length, queue.takeBatch().length], [64, 64]);
});

test('a full queue rejects the newest operation of the caller that has most, and accepts callers that have less', () => {
  const queue = new FairQueue();
  const refused: string[] = [];
  const add = (origin: string, name: string): void =>
    queue.add({
      ...waiting(0, origin),
      settle: (answer) =>
        refused.push(`${name} ${answer.kind === 'error' && 'code' in answer.error ? answer.error.code : ''}`),
    });
  for (let number = 0; number < 1024; number++) add('flood', `flood-${number}`);
  add('ci', 'ci-0');
  assert.deepEqual(refused, ['flood-1023 UNAVAILABLE']);
  assert.throws(() => add('flood', 'one more'), REFUSED);
  for (let number = 1; number < 512; number++) add('ci', `ci-${number}`);
  assert.equal(refused.at(-1), 'flood-512 UNAVAILABLE');
  assert.throws(() => add('ci', 'more than half'), REFUSED);
  assert.equal(queue.length, 1024);
  assert.equal(originsOf(queue.takeBatch().slice(0, 4)), 'flood ci flood ci');
});

test('large operations of one leave room for small ones of others', () => {
  const queue = new FairQueue();
  fill(queue, 256, MIB / 4, 'flood');
  fill(queue, 3, MIB / 4, 'ci');
  assert.equal(queue.length, 256);
  assert.throws(() => fill(queue, 1, MIB / 4, 'flood'), REFUSED);
});

test('unauthenticated callers take at most a quarter of the room together, from any number of addresses', () => {
  const queue = new FairQueue();
  const unauthenticated = (number: number): QueuedOperation => {
    const auth = { kind: 'unauthenticated', remoteAddr: `2001:db8::${number}` } as const;
    return { ...waiting(), operation: { ...SILENT, auth } };
  };
  for (let number = 0; number < 256; number++) queue.add(unauthenticated(number));
  assert.throws(() => queue.add(unauthenticated(256)), REFUSED);
  fill(queue, 768, 0, 'ci');
  assert.throws(() => queue.add(waiting(0, 'ci')), REFUSED);
  queue.add(waiting(0, 'deploy'));
  queue.takeAll();
  queue.add(unauthenticated(257));
});

test('room for bytes is made by the caller that has most bytes, not by one with many small operations', () => {
  const queue = new FairQueue();
  const refused: string[] = [];
  const add = (origin: string, sizeBytes: number): void =>
    queue.add({ ...waiting(sizeBytes, origin), settle: () => refused.push(origin) });
  for (let number = 0; number < 700; number++) add('many', 0);
  for (let number = 0; number < 256; number++) add('large', MIB / 4);
  add('third', MIB / 4);
  assert.deepEqual(refused, ['large']);
});
