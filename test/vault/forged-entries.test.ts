// Forged entries with sequence numbers below the first one: the schema rejects them, and verification finds
// those that were written past the schema.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENTRY_COLUMNS, openDirectDb } from '../kit/direct-db.ts';
import { startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';

const insertAt = (seq: string): string =>
  `INSERT INTO audit_entries (${ENTRY_COLUMNS}) SELECT ${seq}, id, timestamp, event_type, agent_name, resource, action, result,
     policy_name, lease_id, reason, request_id, remote_addr, hmac FROM audit_entries WHERE seq = 1`;

/** Runs SQL as the owner of the database. */
const DROP_CHECK = {
  sqlite: 'PRAGMA ignore_check_constraints = ON',
  postgres: 'ALTER TABLE audit_entries DROP CONSTRAINT audit_entries_seq_check',
}[STORE];

test('the schema rejects an entry whose sequence number is below 1', async (t) => {
  const { dataDir } = await startTestService(t);
  const outside = await openDirectDb(dataDir);
  t.after(() => outside.close());
  for (const seq of ['0', '-1']) await assert.rejects(outside.run(insertAt(seq)), /check constraint/i);
});

for (const seq of ['0', '-1', '-9223372036854775808']) {
  test(`verification finds a forged entry with the sequence number ${seq}`, async (t) => {
    const { admin, dataDir } = await startTestService(t);
    const outside = await openDirectDb(dataDir);
    t.after(() => outside.close());
    assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
    await outside.run(`${DROP_CHECK}; ${insertAt(seq)}`);
    const { data } = (await admin.get('/api/v1/audit/verify')).body;
    assert.deepEqual([data.valid, data.break_at_entry, data.break_at_timestamp], [false, 0, null]);
    assert.match(data.message, /an entry before the first one/);
  });
}
