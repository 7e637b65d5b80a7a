/** Contract: idempotency records are found by id, replaced under the same id, and swept after they expire. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IdempotencyRecord } from '../../src/core/idempotency.ts';
import type { AgentId } from '../../src/core/names.ts';
import type { Store } from '../../src/store/port.ts';
import type { Authenticated } from '../../src/store/stored-data.ts';
import { anEntry, aReply, commit, find, headAt, KEYS, keptReply, T0 } from './rows.ts';
import type { Subject } from './store.ts';
import { numbers, sum, sweepAll, sweepInSteps } from './sweeping.ts';

/** The records among these that exist, by their expiry. */
async function foundOf(
  store: Store,
  replies: readonly IdempotencyRecord[],
): Promise<readonly Authenticated<IdempotencyRecord>[]> {
  const { rows } = await find(
    store,
    replies.map(({ id }) => ({ reply: id })),
  );
  return rows.reply.toSorted((a, b) => a.expiresAt - b.expiresAt);
}

export function keptReplyContract({ name, newPlace, newVault }: Subject): void {
  test(`${name}: a transaction finds idempotency records by id, each once, with every field`, async (t) => {
    const store = await newVault(t);
    const odd = aReply(2, { agentId: 'admin' as AgentId, reply: '{"a":"ü \\"🔑\\" \\u0000\\\\ \u2028"}' });
    const replies = [aReply(1), odd, aReply(3)];
    await commit(store, { entries: [anEntry(1)], changes: replies.map(keptReply) });
    assert.deepEqual(await foundOf(store, [odd, aReply(4), odd, aReply(1)]), [aReply(1), odd]);
    const { rows } = await find(store, [{}, { reply: aReply(4).id }]);
    assert.deepEqual(rows.reply, []);
  });

  test(`${name}: ids of idempotency records are case-sensitive`, async (t) => {
    const store = await newVault(t);
    const [lower, upper] = [
      aReply(1, { id: 'abc=' as IdempotencyRecord['id'] }),
      aReply(2, { id: 'ABC=' as IdempotencyRecord['id'] }),
    ];
    await commit(store, { changes: [keptReply(lower), keptReply(upper)] });
    assert.deepEqual(await foundOf(store, [upper]), [upper]);
    assert.deepEqual(await foundOf(store, [lower]), [lower]);
  });

  test(`${name}: a response of 256 KiB is stored in full`, async (t) => {
    const store = await newVault(t);
    const large = aReply(1, { reply: JSON.stringify('ü'.repeat(131_072)) });
    await commit(store, { changes: [keptReply(large)] });
    assert.deepEqual(await foundOf(store, [large]), [large]);
  });

  test(`${name}: an idempotency record replaces one with its id, in another batch and in the same`, async (t) => {
    const store = await newVault(t);
    const again = (n: number) => aReply(1, { reply: `"${n}"`, agentId: `agent-${n}` as AgentId, expiresAt: T0 + n });
    await commit(store, { changes: [keptReply(aReply(1)), keptReply(aReply(2))] });
    await commit(store, { changes: [keptReply(again(5))] });
    assert.deepEqual(await foundOf(store, [aReply(1)]), [again(5)]);
    await commit(store, { changes: [keptReply(again(6)), keptReply(again(7))] });
    assert.deepEqual(await foundOf(store, [aReply(1), aReply(2)]), [again(7), aReply(2)]);
  });

  test(`${name}: idempotency records survive a restart`, async (t) => {
    const open = await newPlace(t);
    const store = await open();
    await store.initialise('check', headAt(0), T0, KEYS);
    await commit(store, { changes: [keptReply(aReply(1))] });
    await store.close();
    const again = await open();
    t.after(() => again.close());
    assert.deepEqual(await foundOf(again, [aReply(1)]), [aReply(1)]);
  });

  test(`${name}: expired idempotency records are swept, in bounded steps, and no others`, async (t) => {
    const store = await newVault(t);
    const now = T0 + 86_400_000;
    const ended = numbers(25).map((n) => aReply(n, { expiresAt: now - n }));
    const lasting = [now, now + 1, now + 86_400_000].map((expiresAt, n) => aReply(100 + n, { expiresAt }));
    await commit(store, { changes: [...ended, ...lasting].map(keptReply) });
    const steps = await sweepInSteps(store, now, 10);
    assert.equal(sum(steps), 25);
    assert.deepEqual(await foundOf(store, [...ended, ...lasting]), lasting);
    assert.equal(await sweepAll(store, now + 2), 2);
    assert.deepEqual(await foundOf(store, lasting), lasting.slice(2));
  });

  test(`${name}: a replaced idempotency record lasts until its new expiry`, async (t) => {
    const store = await newVault(t);
    await commit(store, { changes: [keptReply(aReply(1, { expiresAt: T0 + 1 }))] });
    const later = aReply(1, { expiresAt: T0 + 100 });
    await commit(store, { changes: [keptReply(later)] });
    assert.equal(await sweepAll(store, T0 + 50), 0);
    assert.deepEqual(await foundOf(store, [later]), [later]);
  });
}
