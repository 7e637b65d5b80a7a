// Rows whose key was altered outside, or that belong to a removed row, are named.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { insert } from './raw-rows.ts';
import { prepare } from './state-attacks.ts';

async function problemsOf({ admin }: TestService, query: string): Promise<string[]> {
  const { valid, state } = (await admin.get(`/api/v1/audit/verify?${query}=true`)).body.data;
  assert.equal(valid, true);
  return state.problems.map(({ subject, problem }: Record<string, string>) => `${subject}: ${problem}`);
}

test('rows with an empty key are checked', async (t) => {
  const service = await startTestService(t);
  await prepare(service);
  await executeSql(
    service.dataDir,
    "UPDATE agents SET id = ''; UPDATE policies SET name = ''; UPDATE usages SET path = ''; UPDATE credentials SET id = ''",
  );
  const altered = ['agent:bot', 'policy:', 'credential:prod/key', 'targets:'].map((subject) => `${subject}: altered`);
  const missing = ['policy:bot-0: missing', 'targets:prod/key: missing'];
  assert.deepEqual(await problemsOf(service, 'state'), [...altered, ...missing]);
  assert.ok((await problemsOf(service, 'values')).includes('credential:prod/key version 1: value unreadable'));
});

for (const isStoredAgain of [false, true]) {
  test(`targets of a removed credential are named when inserted again, ${isStoredAgain ? 'with' : 'without'} another one at the path`, async (t) => {
    const service = await startTestService(t);
    await prepare(service);
    const [usage] = await selectRows(service.dataDir, 'SELECT * FROM usages');
    assert.ok(usage);
    await service.admin.delete('/api/v1/credentials/prod/key');
    if (isStoredAgain) await service.admin.post('/api/v1/credentials', { path: 'prod/key', value: 'other' });
    await executeSql(service.dataDir, insert('usages', usage));
    assert.equal((await service.admin.get('/api/v1/targets/prod/key')).status, 404);
    assert.deepEqual(await problemsOf(service, 'state'), ['targets:prod/key: not as recorded']);
  });
}
