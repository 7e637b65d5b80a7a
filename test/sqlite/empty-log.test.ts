// A log that was emptied under the service, including the head record. With several nodes no node continues, and each
// start writes an entry; test/vault checks the messages about a log without entries.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { GENESIS_MAC } from '../../src/core/audit.ts';
import { headMac } from '../../src/crypto/chain.ts';
import { deriveKeys, parseRootKey } from '../../src/crypto/keys.ts';
import { executeSql } from '../kit/direct-db.ts';
import { dataOf } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const INTACT = 'valid entries first_entry last_entry';

function auditKeyOf({ dataDir }: Pick<TestService, 'dataDir'>) {
  const rootKey = parseRootKey(readFileSync(join(dataDir, 'root.key'), 'utf8'));
  return deriveKeys(rootKey ?? assert.fail('no root key')).audit;
}

test('an empty log is valid: 0 entries and nulls', async (t) => {
  const other = await startTestService(t);
  // The start was recorded, so the test restores the head record of the empty log.
  const mac = headMac(auditKeyOf(other), 0, GENESIS_MAC);
  const head = `UPDATE audit_head SET seq = 0, hmac = '${GENESIS_MAC}', mac = '${mac}'`;
  await executeSql(other.dataDir, `DELETE FROM audit_entries; ${head}`);
  const answer = await other.admin.get('/api/v1/audit/verify');
  assert.deepEqual(dataOf(answer, 200, INTACT), { valid: true, entries: 0, first_entry: null, last_entry: null });
});
