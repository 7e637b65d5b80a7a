// Entries that another writer inserted below the first one or far beyond the last: verification finds them, and fast.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RANGE_ENTRIES } from '../../src/vault/audit/verification/verification-threads.ts';
import { ENTRY_COLUMNS, executeSql, openDirectDb, selectRows } from '../kit/direct-db.ts';
import { STORE } from '../kit/stores.ts';
import { openVault, put, verify } from './fixture.ts';

const insertAt = (seq: number | string, timestamp = 'timestamp'): string =>
  `INSERT INTO audit_entries (${ENTRY_COLUMNS}) SELECT ${seq}, id, ${timestamp}, event_type, agent_name, resource, action, result,
     policy_name, lease_id, reason, request_id, remote_addr, hmac FROM audit_entries WHERE seq = 1`;
const removeAt = (seq: number | string): string => `DELETE FROM audit_entries WHERE seq = ${seq}`;

/** Runs SQL as the owner of the database. */
const DROP_CHECK = {
  sqlite: 'PRAGMA ignore_check_constraints = ON',
  postgres: 'ALTER TABLE audit_entries DROP CONSTRAINT audit_entries_seq_check',
}[STORE];

test('an entry with a sequence number below 1 is rejected by the schema, and found without it', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'prod/key');
  const outside = await openDirectDb(vault.directory);
  t.after(() => outside.close());
  for (const seq of ['0', '-1']) await assert.rejects(outside.run(insertAt(seq)), /check constraint/i);
  assert.equal((await verify(vault)).isValid, true);
  await outside.run(DROP_CHECK);
  for (const seq of ['0', '-1', '-9223372036854775808']) {
    await outside.run(insertAt(seq));
    const found = await verify(vault);
    assert.ok(!found.isValid);
    assert.deepEqual([found.breakAtEntry, found.breakAtTimestamp], [0, null], seq);
    assert.match(found.reason, /an entry before the first one/);
    await outside.run(removeAt(seq));
  }
});

/** Around the limits of 32-bit counters, of entries and of ranges; and the largest number that the server reads. */
const ORDINALS = [1e12, 2 ** 31 * RANGE_ENTRIES, 3e13, 2 ** 32 * RANGE_ENTRIES, Number.MAX_SAFE_INTEGER];

test('a foreign entry is reported as a gap after the last intact entry', { timeout: 120_000 }, async (t) => {
  const vault = await openVault(t);
  await put(vault, 'prod/key');
  for (const seq of ORDINALS) {
    await executeSql(vault.directory, insertAt(seq));
    const found = await verify(vault);
    assert.ok(!found.isValid);
    assert.equal(found.breakAtEntry, 2, `${seq}`);
    await executeSql(vault.directory, removeAt(seq));
  }
});

test('a foreign entry that is removed again leaves the log unchanged, and batches continue before and after', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'prod/key');
  await executeSql(vault.directory, insertAt(1000, "'2999-01-01T00:00:00.000Z'"));
  await put(vault, 'prod/key', 'a second time');
  assert.equal((await verify(vault)).isValid, false);
  await executeSql(vault.directory, removeAt(1000));
  await put(vault, 'prod/key', 'a third time');
  assert.equal((await verify(vault)).isValid, true);
  const [last] = await selectRows(vault.directory, 'SELECT max(timestamp) AS at FROM audit_entries');
  assert.ok(Date.parse(String(last?.['at'])) < Date.now() + 60_000, 'the time of a foreign entry is used');
});
