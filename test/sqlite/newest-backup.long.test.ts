// The search for the newest backup in a log that grows between two searches.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { NewestBackup } from '../../src/server/metrics/inventory.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService } from '../kit/service.ts';

test('a search finds backups before its first entry and after its last, and the newest of two', async (t) => {
  const service = await startTestService(t);
  const { admin } = service;
  const complete = '/api/v1/audit?event_type=service.backup_result&result=allowed';
  for (const count of [1, 2]) {
    assert.equal((await admin.post('/api/v1/backup', {})).status, 200);
    await until(async () => (await admin.get(complete)).body.data.length === count);
    await admin.post('/api/v1/credentials', { path: 'a', value: 'a value' });
  }
  const [second, first] = (await admin.get(complete)).body.data;
  await service.stop();
  const store = new SqliteStore(join(service.dataDir, 'leasehold.db'));
  t.after(() => store.close());
  const fromStart = new NewestBackup(store);
  await fromStart.search(first.seq - 1);
  assert.equal(fromStart.at, null);
  await fromStart.search(first.seq);
  assert.equal(fromStart.at, Date.parse(first.timestamp));
  await fromStart.search(second.seq + 1);
  assert.equal(fromStart.at, Date.parse(second.timestamp));
  const later = new NewestBackup(store);
  await later.search(second.seq + 1);
  assert.equal(later.at, Date.parse(second.timestamp));
});
