// A full disk: SQLite reports it, writes without room are rejected, and nothing is lost.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { StoreError } from '../../src/store/errors.ts';
import {
  assertMemoryIsTheStore,
  get,
  type OpenedVault,
  openVault,
  outcomeOf,
  put,
  readLog,
  verify,
} from '../vault/fixture.ts';

/** Opens the vault, and gives access to its connection: SQLite limits the pages per connection, not per file. */
async function openTapped(t: TestContext): Promise<{ vault: OpenedVault; connection: DatabaseSync }> {
  const opened: DatabaseSync[] = [];
  const { exec } = DatabaseSync.prototype;
  const tap = t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    opened.push(this);
    return exec.call(this, sql);
  });
  const vault = await openVault(t);
  tap.mock.restore();
  const [connection] = opened;
  assert.ok(connection);
  return { vault, connection };
}

test('a full disk rejects writes without room, loses nothing, and recovers when there is room again', async (t) => {
  const { vault, connection } = await openTapped(t);
  await put(vault, 'small', 'v');
  connection.exec('PRAGMA max_page_count = 1');
  const before = await readLog(vault.real);
  const large = 'x'.repeat(200_000);
  const outcomes = await Promise.all([outcomeOf(get(vault, 'small')), outcomeOf(put(vault, 'large', large))]);
  assert.deepEqual(outcomes, ['UNAVAILABLE', 'UNAVAILABLE']);
  const [failure] = vault.failures;
  assert.ok(failure instanceof StoreError && failure.cause instanceof Error);
  assert.deepEqual([failure.kind, 'errcode' in failure.cause && failure.cause.errcode], ['unavailable', 13]);
  assert.deepEqual(await readLog(vault.real), before);

  assert.equal(await get(vault, 'small'), 'v');
  assert.equal(await outcomeOf(put(vault, 'large', large)), 'UNAVAILABLE');
  connection.exec('PRAGMA max_page_count = 1000000');
  assert.equal(await outcomeOf(put(vault, 'large', large)), 'ok');
  assert.equal(await get(vault, 'large'), large);
  assert.deepEqual([vault.broken, vault.ledger.state], [[], 'ok']);
  await assertMemoryIsTheStore(vault);
  assert.equal((await verify(vault)).isValid, true);
});
