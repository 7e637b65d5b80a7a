// A row inserted far beyond the log: for any sequence number the gap before it is found, and fast.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RANGE_ENTRIES } from '../../src/vault/verification/pool.ts';
import { ENTRY_COLUMNS, executeSql, selectRows } from '../kit/direct-db.ts';
import { openVault, put, verify } from './fixture.ts';

/** Around the limits of 32-bit counters, of entries and of ranges; and the largest number that the service reads. */
const ORDINALS = [1e12, 2 ** 31 * RANGE_ENTRIES, 3e13, 2 ** 32 * RANGE_ENTRIES, Number.MAX_SAFE_INTEGER];

for (const seq of ORDINALS) {
  test(`a foreign entry ${seq} is reported as a gap after the last intact entry`, { timeout: 120_000 }, async (t) => {
    const vault = await openVault(t);
    await put(vault, 'prod/key');
    await executeSql(
      vault.directory,
      `INSERT INTO audit_entries (${ENTRY_COLUMNS}) SELECT ${seq}, id, timestamp, event_type, agent_name, resource, action, result,
      policy_name, lease_id, reason, request_id, remote_addr, hmac FROM audit_entries WHERE seq = 1`,
    );
    const verification = await verify(vault);
    assert.equal(verification.isValid, false);
    assert.equal(verification.breakAtEntry, 2);
  });
}

test('a foreign entry that is removed again leaves the log unchanged, and batches continue before and after', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'prod/key');
  await executeSql(
    vault.directory,
    `INSERT INTO audit_entries (${ENTRY_COLUMNS}) SELECT 1000, id, '2999-01-01T00:00:00.000Z', event_type, agent_name, resource, action, result,
      policy_name, lease_id, reason, request_id, remote_addr, hmac FROM audit_entries WHERE seq = 1`,
  );
  await put(vault, 'prod/key', 'a second time');
  assert.equal((await verify(vault)).isValid, false);
  await executeSql(vault.directory, 'DELETE FROM audit_entries WHERE seq = 1000');
  await put(vault, 'prod/key', 'a third time');
  assert.equal((await verify(vault)).isValid, true);
  const [last] = await selectRows(vault.directory, 'SELECT max(timestamp) AS at FROM audit_entries');
  assert.ok(Date.parse(String(last?.['at'])) < Date.now() + 60_000, 'the time of a foreign entry is used');
});
