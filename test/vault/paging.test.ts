// Steps of long work alternate: one waiter resumes at a time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentName, TokenHash } from '../../src/core/names.ts';
import type { Context } from '../../src/core/operation.ts';
import { readListing, ScanTurns, sliceListing, yieldToEventLoop } from '../../src/vault/paging.ts';
import { admin, CONNECTED, settle } from './fixture.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

const OTHER: Context = {
  auth: { kind: 'session', tokenHash: 'other' as TokenHash, agentName: 'other' as AgentName },
  requestId: 'r',
  remoteAddr: null,
};
const STAYING = new ScanTurns().readerOf(admin(), CONNECTED);

/** Positions are indexes; each step scans four numbers and finds the even ones. */
function evenNumbers(upTo: number) {
  const look = (from: number, most: number) => {
    const rows: number[] = [];
    let place = from;
    while (place < Math.min(upTo, from + 4) && rows.length < most) {
      if (place % 2 === 0) rows.push(place);
      place += 1;
    }
    return { rows, next: place < upTo ? place : null };
  };
  return {
    start: 0,
    decideAgain: async () => undefined,
    list: async (from: number, limit: number) => look(from, limit),
    count: async (from: number, atMost: number) => {
      const { rows, next } = look(from, atMost);
      return { count: rows.length, next };
    },
  };
}

test('a page contains the rows after its offset, and the total counts all rows, whatever a step finds', async () => {
  const even = numbers(50).filter((number) => number % 2 === 0);
  for (const offset of [0, 1, 2, 3, 7, 24, 25, 26, 1000]) {
    for (const limit of [1, 2, 5, 25, 1000]) {
      const { rows, meta } = await readListing({ limit, offset }, evenNumbers(50), STAYING);
      assert.deepEqual((await Array.fromAsync(rows)).flat(), even.slice(offset, offset + limit), `${offset}, ${limit}`);
      assert.deepEqual(meta, { limit, offset, total: 25 });
    }
  }
  const { rows, meta } = await readListing(null, evenNumbers(50), STAYING);
  assert.deepEqual([(await Array.fromAsync(rows)).flat(), meta], [even, null]);
});

test('a page starts where its offset was reached, and skipped rows are not read again', async () => {
  const source = evenNumbers(50);
  const begun: number[] = [];
  const list = (from: number, limit: number) => {
    begun.push(from);
    return source.list(from, limit);
  };
  const { rows } = await readListing({ limit: 2, offset: 20 }, { ...source, list }, STAYING);
  assert.deepEqual(await Array.fromAsync(rows), [[40, 42]]);
  assert.deepEqual(begun, [39]);
});

test('a list that is read slowly is decided again, and ends with that decision', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  let decisions = 0;
  const source = {
    ...evenNumbers(50),
    async decideAgain() {
      decisions += 1;
      if (decisions === 2) throw new Error('denied');
    },
  };
  const { rows } = await readListing(null, source, STAYING);
  const batches = rows[Symbol.asyncIterator]();
  const read = async () => (await batches.next()).value;
  assert.deepEqual([await read(), await read(), decisions], [[0, 2], [4, 6], 0]);
  now += 1000;
  assert.deepEqual([await read(), await read(), decisions], [[8, 10], [12, 14], 1]);
  now += 1000;
  await assert.rejects(read, /denied/);
});

test('waiters resume one at a time, in order', async () => {
  let round = 0;
  let isOver = false;
  const countRounds = (): void => {
    round += 1;
    if (!isOver) setImmediate(countRounds);
  };
  setImmediate(countRounds);
  const went: [number, number][] = [];
  await Promise.all(
    numbers(20).map(async (who) => {
      await yieldToEventLoop();
      went.push([who, round]);
    }),
  );
  isOver = true;
  assert.deepEqual(
    went.map(([who]) => who),
    numbers(20),
  );
  assert.equal(new Set(went.map(([, when]) => when)).size, 20, 'some shared a round');
  await settle();
  await yieldToEventLoop();
});

test('a list in memory is returned in batches too, and an empty list as one', async () => {
  const batches = await Array.fromAsync(sliceListing(numbers(1200), null).rows);
  assert.deepEqual(batches.flat(), numbers(1200));
  assert.ok(batches.every(({ length }) => length <= 500));
  const page = sliceListing(numbers(1200), { limit: 700, offset: 300 });
  assert.deepEqual((await Array.fromAsync(page.rows)).flat(), numbers(1200).slice(300, 1000));
  assert.deepEqual(page.meta, { limit: 700, offset: 300, total: 1200 });
  assert.deepEqual(await Array.fromAsync(sliceListing([], null).rows), [[]]);
});

test('scans of a caller run one after the other, and one whose client leaves ends without the others', async () => {
  const turns = new ScanTurns();
  const steps: string[] = [];
  const clients = ['first', 'second', 'third'].map((name) => ({ name, leaving: new AbortController() }));
  const scans = clients.map(({ name, leaving: { signal } }) => {
    const endless = {
      start: 0,
      decideAgain: async () => undefined,
      list: async () => assert.fail('listed'),
      count: async (from: number) => {
        steps.push(name);
        return { count: 1, next: from + 1 };
      },
    };
    return readListing({ limit: 1, offset: 0 }, endless, turns.readerOf(admin(), signal, 'log'));
  });
  const leave = async (index: number): Promise<void> => {
    clients[index]?.leaving.abort(new Error('gone'));
    await assert.rejects(Promise.resolve(scans[index]), /gone/);
  };
  await turns.readerOf(OTHER, CONNECTED, 'log').inTurn(settle);
  await turns.readerOf(admin(), CONNECTED).inTurn(settle);
  assert.deepEqual([...new Set(steps)], ['first']);
  await leave(1);
  await leave(0);
  await settle();
  assert.deepEqual([...new Set(steps)], ['first', 'third']);
  await leave(2);
  const taken = steps.length;
  await settle();
  await turns.readerOf(admin(), CONNECTED, 'log').inTurn(settle);
  assert.equal(steps.length, taken);
});

test('rows that few steps find are no longer looked for once the client has left', async () => {
  const leaving = new AbortController();
  let steps = 0;
  const source = {
    start: 0,
    decideAgain: async () => undefined,
    count: async () => assert.fail('counted'),
    list: async (from: number) => {
      steps += 1;
      if (steps === 3) leaving.abort(new Error('gone'));
      return { rows: [], next: from + 1 };
    },
  };
  const { rows } = await readListing(null, source, new ScanTurns().readerOf(admin(), leaving.signal));
  await assert.rejects(Array.fromAsync(rows), /gone/);
  assert.equal(steps, 3);
});
