// Liveness and readiness: a vault that waits for its database is alive and not ready.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lockDatabase } from '../kit/direct-db.ts';
import { startTestService } from '../kit/service.ts';

test('while batches cannot be committed the node is alive, not ready, and still shows metrics', async (t) => {
  const { admin, anonymous, dataDir } = await startTestService(t);
  const probe = async (path: string) => {
    const { status, body } = await anonymous.get(path);
    return [status, body.data.status];
  };
  assert.deepEqual(
    [await probe('/livez'), await probe('/readyz')],
    [
      [200, 'ok'],
      [200, 'ok'],
    ],
  );
  const lock = await lockDatabase(dataDir);
  assert.equal((await admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 503);
  assert.deepEqual(
    [await probe('/livez'), await probe('/readyz')],
    [
      [200, 'ok'],
      [503, 'failing'],
    ],
  );
  const page = (await anonymous.get('/metrics')).text;
  assert.match(page, /^leasehold_health_status\{status="failing"\} 1$/m);
  assert.match(page, /^leasehold_batches_total\{result="failed"\} [1-9]/m);
  await lock.release();
  assert.equal((await admin.get('/api/v1/credentials/a?view=metadata')).status, 404);
  assert.deepEqual(await probe('/readyz'), [200, 'ok']);
});

test('probes say nothing but the status, and need no token', async (t) => {
  const { as } = await startTestService(t);
  for (const path of ['/livez', '/readyz']) {
    const { status, text } = await as('of nothing').get(path);
    assert.deepEqual([status, text], [200, '{"data":{"status":"ok"}}']);
  }
});
