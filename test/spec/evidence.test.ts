// The independent verifier agrees with the server about the server's own export.
// SOURCE: docs/decisions.md, "The audit log".

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportAuditKeys } from '../../src/crypto/chain.ts';
import { runVerifier } from '../crypto/python-verifier.ts';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService } from '../kit/service.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';

test('the independent verifier agrees with the server about an intact and an altered export', async (t) => {
  const service = await startTestService(t);
  const agent = await service.agent('ci', { 'prod/*': ['retrieve', 'list'] });
  await service.admin.post('/api/v1/credentials', { path: 'prod/key', value: 'a value' });
  for (const path of ['prod/key', 'prod/none', 'dev/key']) await agent.get(`/api/v1/credentials/${path}`);
  // A use that no upstream answers has an intent and a result.
  const targets = [{ origin: 'http://127.0.0.1:1', allow_networks: ['127.0.0.0/8'] }];
  await service.admin.put('/api/v1/targets/prod/key', { targets, placement: { kind: 'bearer' } });
  const use = { path: 'prod/key', method: 'GET', url: 'http://127.0.0.1:1/a', purpose: 'März' };
  assert.equal((await service.admin.post('/api/v1/use', use)).status, 502);
  const results = () => selectRows(service.dataDir, 'SELECT ended FROM audit_entries WHERE ended IS NOT NULL');
  await until(async () => (await results()).length > 0);
  assert.deepEqual(JSON.parse(JSON.stringify(await results())), [{ ended: 'failed' }]);
  const compare = async () => {
    const exported = await service.admin.get('/api/v1/audit/export');
    const { data } = (await service.admin.get('/api/v1/audit/verify')).body;
    const given = exported.headers.get('leasehold-audit-head');
    const key = exportAuditKeys(await vaultKeysOf(service.dataDir));
    const verdict = await runVerifier(t, { text: exported.text, head: given, auditKey: key });
    const { message: _, ...told } = data;
    const { message: __, ...found } = verdict.result;
    assert.deepEqual(found, told);
    return { status: verdict.status, found };
  };
  const good = await compare();
  assert.equal(good.status, 0);
  assert.ok(good.found.entries >= 10);

  await executeSql(service.dataDir, "UPDATE audit_entries SET result = 'allowed' WHERE result = 'denied'");
  const [denied] = await selectRows(service.dataDir, "SELECT seq FROM audit_entries WHERE resource = 'dev/key'");
  const bad = await compare();
  assert.deepEqual([bad.status, bad.found.break_at_entry], [1, denied?.['seq']]);
});
