// A log that somebody emptied under the service, head record and all: where several nodes share it none of them goes on with that,
// and each start leaves an entry; what is said of a log without entries is held in test/vault.

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
  // The start is recorded: the head record of before it is made here.
  const mac = headMac(auditKeyOf(other), 0, GENESIS_MAC);
  const head = `UPDATE audit_head SET seq = 0, hmac = '${GENESIS_MAC}', mac = '${mac}'`;
  await executeSql(other.dataDir, `DELETE FROM audit_entries; ${head}`);
  const answer = await other.admin.get('/api/v1/audit/verify');
  assert.deepEqual(dataOf(answer, 200, INTACT), { valid: true, entries: 0, first_entry: null, last_entry: null });
});
