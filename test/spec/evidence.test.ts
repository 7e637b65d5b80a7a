// The independent verifier agrees with the service about the service's own export.
// SOURCE: docs/decisions.md, "The audit log".

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { exportAuditKey } from '../../src/crypto/keys.ts';
import { runVerifier } from '../crypto/python-verifier.ts';
import { keysOf } from '../crypto/vectors.ts';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { startTestService } from '../kit/service.ts';

test('the independent verifier agrees with the service about an intact and an altered export', async (t) => {
  const service = await startTestService(t);
  const agent = await service.agent('ci', { 'prod/*': ['retrieve', 'list'] });
  await service.admin.post('/api/v1/credentials', { path: 'prod/key', value: 'v' });
  for (const path of ['prod/key', 'prod/none', 'dev/key']) await agent.get(`/api/v1/credentials/${path}`);
  const rootKey = readFileSync(join(service.dataDir, 'root.key'), 'utf8').trim();
  const compare = async () => {
    const exported = await service.admin.get('/api/v1/audit/export');
    const { data } = (await service.admin.get('/api/v1/audit/verify')).body;
    const given = exported.headers.get('leasehold-audit-head');
    const key = exportAuditKey(keysOf(rootKey));
    const verdict = await runVerifier(t, { text: exported.text, head: given, auditKey: key });
    const { message: _, ...told } = data;
    const { message: __, ...found } = verdict.result;
    assert.deepEqual(found, told);
    return { status: verdict.status, found };
  };
  const good = await compare();
  assert.equal(good.status, 0);
  assert.ok(good.found.entries >= 7);

  await executeSql(service.dataDir, "UPDATE audit_entries SET result = 'allowed' WHERE result = 'denied'");
  const [denied] = await selectRows(service.dataDir, "SELECT seq FROM audit_entries WHERE resource = 'dev/key'");
  const bad = await compare();
  assert.deepEqual([bad.status, bad.found.break_at_entry], [1, denied?.['seq']]);
});
