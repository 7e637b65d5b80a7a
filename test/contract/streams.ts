/** Contract: the log as a stream reads it, its position, and the count of open sessions. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readEntries } from '../../src/store/audit-log.ts';
import { countOpenSessions } from '../../src/store/vault-metadata.ts';
import { aSession, commit, commitEntries, headAt, KEY_CHECK, KEYS, storedPut, T0 } from './rows.ts';
import type { Subject } from './store.ts';

export function streamContract({ name, newPlace, newVault }: Subject): void {
  test(`${name}: a stream reads durable entries in pages, from a position that survives a restart`, async (t) => {
    const open = await newPlace(t);
    const store = await open();
    await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
    const log = store.openStreamLog();
    assert.equal(await log.claim('archive'), true);
    assert.deepEqual([await log.readEnd(), await log.readPosition('archive')], [0, 0]);
    await commitEntries(store, 30);
    assert.equal(await log.readEnd(), 30);
    const page = await log.readEntries(11, 30, 5);
    assert.deepEqual(page, await store.run(readEntries(11, 15, 5)));
    await log.savePosition('archive', 15);
    await log.savePosition('other', 7);
    log.close();
    await store.close();
    const again = await open();
    t.after(() => again.close());
    const next = again.openStreamLog();
    t.after(() => next.close());
    assert.deepEqual([await next.readPosition('archive'), await next.readPosition('other')], [15, 7]);
    await next.savePosition('archive', 9);
    assert.equal(await next.readPosition('archive'), 9);
  });

  test(`${name}: of several writers one may send a stream, until it closes its log`, async (t) => {
    const store = await newVault(t);
    const [first, second] = [store.openStreamLog(), store.openStreamLog()];
    t.after(() => first.close());
    t.after(() => second.close());
    assert.equal(await first.claim('archive'), true);
    assert.equal(await second.claim('other'), true);
    if (!store.isMultiWriter) return;
    assert.equal(await second.claim('archive'), false);
    first.close();
    const endsAt = performance.now() + 60_000;
    while (!(await second.claim('archive'))) assert.ok(performance.now() < endsAt);
    await assert.rejects(first.savePosition('archive', 1));
  });

  test(`${name}: open sessions are counted in steps, without those that have ended`, async (t) => {
    const store = await newVault(t);
    const sessions = [1, 2, 3, 4].map((n) => aSession(n, { expiresAt: T0 + n * 10 }));
    await commit(store, { changes: sessions.map((session) => storedPut('session', session)) });
    const first = await store.run(countOpenSessions({ expiresAt: T0 + 10, tokenHash: '\uffff' }, 2));
    assert.deepEqual([first.count, first.last?.expiresAt], [2, T0 + 30]);
    const second = await store.run(countOpenSessions(first.last ?? assert.fail(), 2));
    assert.equal(second.count, 1);
    assert.deepEqual(await store.run(countOpenSessions(second.last ?? assert.fail(), 2)), { count: 0, last: null });
  });
}
