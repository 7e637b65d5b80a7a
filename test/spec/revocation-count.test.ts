// A change of targets ends use leases only: retrieval leases stay active, and a later revocation counts them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService } from '../kit/service.ts';

test('a revocation counts the retrieval leases that a change of targets left active', async (t) => {
  const { admin } = await startTestService(t);
  const path = 'prod/key';
  await admin.post('/api/v1/credentials', { path, value: 'x' });
  const { body } = await admin.get(`/api/v1/credentials/${path}`);
  await admin.get(`/api/v1/credentials/${path}`);
  const targets = [{ origin: 'https://api.example.com' }];
  assert.equal((await admin.put(`/api/v1/targets/${path}`, { targets, placement: { kind: 'bearer' } })).status, 200);
  const lease = await admin.get(`/api/v1/leases/${body.data.lease_id}`);
  assert.equal(lease.body.data.status, 'active');
  assert.deepEqual((await admin.post('/api/v1/leases/revoke', { path })).body.data, { revoked: 2 });
});
