// A log that was emptied under the service, including the head record. With several nodes no node continues, and each
// start writes an entry; test/vault checks the messages about a log without entries.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { executeSql } from '../kit/direct-db.ts';
import { headOf } from '../kit/head.ts';
import { dataOf } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';

const INTACT = 'valid entries first_entry last_entry';

async function auditKeyOf({ dataDir }: Pick<TestService, 'dataDir'>) {
  return (await vaultKeysOf(dataDir)).audit;
}

test('an empty log is valid: 0 entries and nulls', async (t) => {
  const other = await startTestService(t);
  // The start was recorded, so the test restores the head record of the empty log.
  const { hmac, mac, control } = headOf(await auditKeyOf(other), []);
  const head = `UPDATE audit_head SET seq = 0, epoch = 0, hmac = '${hmac}', mac = '${mac}', tree = '', control = '${control}'`;
  await executeSql(other.dataDir, `DELETE FROM audit_entries; ${head}`);
  const answer = await other.admin.get('/api/v1/audit/verify');
  assert.deepEqual(dataOf(answer, 200, INTACT), { valid: true, entries: 0, first_entry: null, last_entry: null });
});
