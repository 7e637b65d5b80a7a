// Access counts in SQLite: written a few with each commit, and exact wherever the process ended.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { removeRow } from '../../src/core/change.ts';
import type { CredentialId } from '../../src/core/names.ts';
import { ALL_PATHS } from '../../src/core/pattern.ts';
import { FIRST_CREDENTIAL, listCredentials } from '../../src/store/credential-lists.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { StoredChange } from '../../src/store/stored-data.ts';
import { aCredential, anEntry, commit, headAt, KEY_CHECK, KEYS, stored, T0 } from '../contract/rows.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { runs } from '../kit/property.ts';

const PATHS = ['a', 'b', 'c', 'd', 'e', 'f'] as const;

/** Passes begin with 3 credentials and take 2 with each commit. */
async function newVault(scope: Scope) {
  const file = join(temporaryDirectory(scope), 'vault.db');
  const open = (): SqliteStore => {
    const store = new SqliteStore(file, { counting: { flushThreshold: 3, rowsPerCommit: 2 } });
    scope.after(() => store.close().catch(() => undefined));
    return store;
  };
  const store = open();
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  return { file, open, store };
}

async function countsOf(store: SqliteStore): Promise<Map<string, number>> {
  const { rows } = await store.run(
    listCredentials(store.dialect, { ranges: ALL_PATHS, type: null }, FIRST_CREDENTIAL, 100),
  );
  return new Map(rows.map(({ path, accessCount }) => [path, accessCount]));
}

/** The counts of the rows, and the last entry that they include. */
function written(file: string): { readonly counts: number[]; readonly throughSeq: number } {
  const database = new DatabaseSync(file);
  try {
    const counts = database.prepare('SELECT count FROM access_counts ORDER BY count_id').all();
    const head = database.prepare('SELECT counted_through_seq AS seq FROM audit_head').get();
    return { counts: counts.map(({ count }) => Number(count)), throughSeq: Number(head?.['seq']) };
  } finally {
    database.close();
  }
}

test('above the threshold a pass writes counts, some with each commit, and then records the last counted entry', async (t) => {
  const { file, store } = await newVault(t);
  const credentials = PATHS.map((path) => aCredential(path));
  await commit(store, { changes: credentials.map(stored) });
  const retrieveAll = async (firstSeq: number, some: typeof credentials): Promise<void> => {
    const entries = some.map(({ path }, index) => anEntry(firstSeq + index, { resource: path }));
    await commit(store, { entries, accesses: new Map(some.map(({ id }) => [id, 1])) });
  };
  await retrieveAll(1, credentials.slice(0, 2));
  await commit(store, {});
  assert.deepEqual(written(file), { counts: [0, 0, 0, 0, 0, 0], throughSeq: 0 }, 'two are not worth it');
  await retrieveAll(3, credentials);
  assert.deepEqual(written(file), { counts: [0, 0, 0, 0, 0, 0], throughSeq: 0 });
  await commit(store, {});
  assert.deepEqual(written(file), { counts: [2, 2, 0, 0, 0, 0], throughSeq: 0 });
  await commit(store, {});
  assert.deepEqual(written(file), { counts: [2, 2, 1, 1, 0, 0], throughSeq: 0 });
  await commit(store, {});
  assert.deepEqual(written(file), { counts: [2, 2, 1, 1, 1, 1], throughSeq: 8 });
});

test('a failed commit does not advance the pass and counts nothing', async (t) => {
  const { file, store } = await newVault(t);
  const credentials = PATHS.map((path) => aCredential(path));
  const accesses = new Map(credentials.map(({ id }) => [id, 1]));
  const entries = credentials.map(({ path }, index) => anEntry(1 + index, { resource: path }));
  await commit(store, { changes: credentials.map(stored) });
  await commit(store, { entries, accesses });
  const before = written(file);
  const turn = await store.begin([]);
  await assert.rejects(turn.commit({ entries: [anEntry(6)], head: headAt(6), treeNodes: [], changes: [], accesses }));
  assert.deepEqual(written(file), before);
  assert.deepEqual([...(await countsOf(store)).values()], [1, 1, 1, 1, 1, 1]);
  for (let i = 0; i < 3; i++) await commit(store, {});
  assert.deepEqual(written(file), { counts: [1, 1, 1, 1, 1, 1], throughSeq: 6 });
});

const ALTERED: Readonly<Record<string, string>> = {
  'a count as large as can be': 'UPDATE access_counts SET count = 9223372036854775807 WHERE count_id = 1',
  'a count below zero': 'UPDATE access_counts SET count = -9223372036854775808 WHERE count_id = 1',
  'a last entry beyond every log': 'UPDATE access_counts SET through_seq = 9223372036854775807 WHERE count_id = 1',
  'a negative last entry': 'UPDATE access_counts SET through_seq = -9223372036854775808 WHERE count_id = 1',
  'a deleted row': 'DELETE FROM access_counts WHERE count_id = 1',
  'numbers given again': 'DELETE FROM sqlite_sequence',
  'the log counted beyond its end': 'UPDATE audit_head SET counted_through_seq = 9223372036854775807',
};

for (const [what, sql] of Object.entries(ALTERED)) {
  test(`a count row altered outside changes that count only: ${what}`, async (t) => {
    const { file, open, store } = await newVault(t);
    const credentials = PATHS.map((path) => aCredential(path));
    const retrieveAll = async (to: SqliteStore, firstSeq: number): Promise<void> => {
      const entries = credentials.map(({ path }, index) => anEntry(firstSeq + index, { resource: path }));
      await commit(to, { entries, accesses: new Map(credentials.map(({ id }) => [id, 1])) });
    };
    await commit(store, { changes: credentials.map(stored) });
    await retrieveAll(store, 1);
    for (let i = 0; i < 3; i++) await commit(store, {});
    // Too few for a pass: the next start counts them.
    const few = credentials.slice(0, 2);
    await commit(store, {
      entries: few.map(({ path }, index) => anEntry(7 + index, { resource: path })),
      accesses: new Map(few.map(({ id }) => [id, 1])),
    });
    const database = new DatabaseSync(file);
    database.exec(sql);
    database.close();
    for (let start = 0; start < 2; start++) {
      const again = open();
      const { a, b, ...others } = Object.fromEntries(await countsOf(again));
      assert.ok(Number.isSafeInteger(a) && Number(a) >= 0, `${a}`);
      const expected = 1 + start * 5;
      assert.deepEqual(others, { c: expected, d: expected, e: expected, f: expected });
      assert.equal(await again.readAccessCount(aCredential('c').id), expected);
      // If the head claims that everything is counted, the uncounted retrievals are lost, once.
      assert.equal(b, what.startsWith('the log') ? expected : expected + 1);
      for (let i = 0; i < 5; i++) await retrieveAll(again, 9 + start * 30 + i * 6);
      for (let i = 0; i < 3; i++) await commit(again, {});
    }
  });
}

test('over any history the counts are exact, wherever in a pass the process ended', async () => {
  const act = fc.oneof(
    { weight: 10, arbitrary: fc.record({ kind: fc.constant('get' as const), path: fc.constantFrom(...PATHS) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('put' as const), path: fc.constantFrom(...PATHS) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), path: fc.constantFrom(...PATHS) }) },
  );
  const turns = fc.array(
    fc.record({ acts: fc.array(act, { maxLength: 6 }), isEnded: fc.boolean(), isLooked: fc.boolean() }),
    { maxLength: 25 },
  );
  await fc.assert(
    fc.asyncProperty(turns, async (history) => {
      await using after = new AsyncDisposableStack();
      const { open, store: first } = await newVault({ after: (end) => after.defer(async () => void (await end())) });
      let store = first;
      const ids = new Map<string, CredentialId>();
      const expected = new Map<string, number>();
      let [seq, made] = [0, 0];
      for (const { acts, isEnded, isLooked } of history) {
        const changes: StoredChange[] = [];
        const entries = [];
        const accesses = new Map<CredentialId, number>();
        for (const { kind, path } of acts) {
          const id = ids.get(path);
          if (kind === 'put' && id === undefined) {
            made += 1;
            const credential = { ...aCredential(path), id: `made-${made}` as CredentialId };
            changes.push(stored(credential));
            ids.set(path, credential.id);
            expected.set(path, 0);
          } else if (kind === 'remove' && id !== undefined) {
            changes.push(removeRow('credential', { id, path: aCredential(path).path }));
            ids.delete(path);
            expected.delete(path);
          } else if (kind === 'get' && id !== undefined) {
            seq += 1;
            entries.push(anEntry(seq, { resource: path }));
            accesses.set(id, (accesses.get(id) ?? 0) + 1);
            expected.set(path, (expected.get(path) ?? 0) + 1);
          }
        }
        await commit(store, { entries, changes, accesses, seq });
        // A store that is not closed has written exactly its commits, like a killed process.
        if (isEnded) store = open();
        if (isLooked) assert.deepEqual(await countsOf(store), new Map([...expected].sort()));
      }
      assert.deepEqual(await countsOf(store), new Map([...expected].sort()));
    }),
    runs(15, 100),
  );
});
