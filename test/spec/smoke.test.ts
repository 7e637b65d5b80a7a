import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService } from '../kit/service.ts';

test('an agent retrieves what a policy grants it', async (t) => {
  const service = await startTestService(t);
  const agent = await service.agent('ci', { 'prod/*': ['retrieve'] });
  await service.admin.post('/api/v1/credentials', { path: 'prod/key', value: 'v' });
  const answer = await agent.get('/api/v1/credentials/prod/key');
  assert.equal(answer.status, 200);
  assert.equal(answer.body.data.value, 'v');
});
