// Durability through syncs of SQLite's write-ahead log: their times, their coverage, and the handling of a failed sync.

import assert from 'node:assert/strict';
import { fdatasyncSync, fstatSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readEntries, readHead } from '../../src/store/audit-log.ts';
import { countCredentials, FIRST_CREDENTIAL } from '../../src/store/credential-lists.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { aCredential, anEntry, asPath, commit, headAt, KEY_CHECK, KEYS, stored, T0 } from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';

/** A vault on a disk whose syncs end when the test says so. */
async function vaultOnDisk(t: TestContext) {
  const file = join(temporaryDirectory(t), 'vault.db');
  const waiting: { end(): void; fail(): void }[] = [];
  let isHeld = false;
  let begun = 0;
  const syncFile = async (descriptor: number): Promise<void> => {
    begun += 1;
    assert.equal(fstatSync(descriptor).ino, statSync(`${file}-wal`).ino, 'another file was synced');
    if (isHeld) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.push({ end: resolve, fail: () => reject(new Error('EIO')) });
      await promise;
    }
    fdatasyncSync(descriptor);
  };
  const store = new SqliteStore(file, { syncFile });
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  isHeld = true;
  const release = (): void => {
    isHeld = false;
    for (const { end } of waiting.splice(0)) end();
  };
  t.after(async () => {
    release();
    await store.close();
  });
  const next = () => {
    const sync = waiting.shift();
    assert.ok(sync !== undefined, 'no sync is under way');
    return sync;
  };
  return { store, next, release, begun: () => begun };
}

/** Writes one entry; returns whether it is durable. */
async function write(store: SqliteStore, seq: number) {
  const turn = await store.begin([]);
  const changes = [stored(aCredential(`c${seq}`))];
  const batch = { entries: [anEntry(seq)], head: headAt(seq), treeNodes: [], changes, accesses: new Map() };
  const { durable } = await turn.commit(batch);
  const state = { is: 'waiting' };
  durable.then(
    () => {
      state.is = 'durable';
    },
    (error: Error) => {
      state.is = error.message;
    },
  );
  return state;
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

test('a batch is durable after a sync that began after it was written, and not before', async (t) => {
  const { store, next } = await vaultOnDisk(t);
  const first = await write(store, 1);
  await settle();
  assert.equal(first.is, 'waiting');
  const second = await write(store, 2);
  next().end();
  await settle();
  assert.deepEqual(
    [first.is, second.is],
    ['durable', 'waiting'],
    'the sync under way had begun before the second write',
  );
  next().end();
  await settle();
  assert.equal(second.is, 'durable');
});

test('batches written during a sync share the next one', async (t) => {
  const { store, next, begun } = await vaultOnDisk(t);
  const before = begun();
  const first = await write(store, 1);
  const others = [await write(store, 2), await write(store, 3), await write(store, 4)];
  assert.equal(begun() - before, 1);
  next().end();
  await settle();
  next().end();
  await settle();
  assert.deepEqual(
    [first, ...others].map(({ is }) => is),
    ['durable', 'durable', 'durable', 'durable'],
  );
  assert.equal(begun() - before, 2);
});

test('the next batch sees written data immediately; reads outside batches wait for the sync', async (t) => {
  const { store, next } = await vaultOnDisk(t);
  await write(store, 1);
  const turn = await store.begin([{ credential: asPath('c1') }]);
  assert.equal(turn.found.rows.credential.length, 1);
  await turn.rollback();
  const looks = [
    store.run(readHead()),
    store.run(readEntries(1, 9, 9)),
    store.run(countCredentials(store.dialect, { ranges: [{ from: 'a', to: 'z' }], type: null }, FIRST_CREDENTIAL, 9)),
  ];
  let told = 0;
  for (const look of looks) void look.then(() => (told += 1));
  await settle();
  assert.equal(told, 0, 'data was reported as durable before its sync');
  next().end();
  await Promise.all(looks);
  assert.equal((await store.run(readHead())).last?.seq, 1);
});

test('a sweep resolves when it is on disk', async (t) => {
  const { store, next } = await vaultOnDisk(t);
  let isSwept = false;
  const swept = store.sweep(T0, 10).then(() => {
    isSwept = true;
  });
  await settle();
  assert.equal(isSwept, false);
  next().end();
  await swept;
});

test('a failed sync is never retried: pending and later batches fail as fatal', async (t) => {
  const { store, next, release, begun } = await vaultOnDisk(t);
  const first = await write(store, 1);
  const second = await write(store, 2);
  next().fail();
  await settle();
  const line = 'the write-ahead log could not be synced';
  assert.deepEqual([first.is, second.is], [line, line]);
  const before = begun();
  release();
  await assert.rejects(commit(store, { entries: [anEntry(3)] }), {
    name: 'StoreError',
    kind: 'fatal',
    message: line,
  });
  await assert.rejects(store.run(readHead()), { name: 'StoreError', kind: 'fatal' });
  await assert.rejects(store.sweep(T0, 10), { name: 'StoreError', kind: 'fatal' });
  assert.equal(begun(), before, 'a failed sync was tried again');
});
