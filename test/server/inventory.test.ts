// The count of active leases and open sessions behind two metrics.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';

test('the first count includes leases of both kinds and sessions, without those that have ended', async (t) => {
  const { address, admin, agent } = await startTestService(t);
  const targets = [{ origin: 'https://api.example.com' }];
  await admin.post('/api/v1/credentials', { path: 'a/b', value: 'a value' });
  await admin.put('/api/v1/targets/a/b', { targets, placement: { kind: 'bearer' } });
  const client = await agent('client', { 'a/*': ['retrieve', 'use'] });
  const other = await agent('other');
  for (let number = 0; number < 4; number++) await client.get('/api/v1/credentials/a/b');
  assert.equal((await client.post('/api/v1/leases/use', { path: 'a/b' })).status, 201);
  const { lease_id: id } = (await client.get('/api/v1/credentials/a/b')).body.data;
  await client.delete(`/api/v1/leases/${id}`);
  await other.delete('/auth/session');
  const families = async () => scrape(address);
  const hasCounted = async () => ((await families()).get('leasehold_sessions_open')?.series.length ?? 0) > 0;
  await until(hasCounted);
  const page = await families();
  assert.equal(seriesValue(page, 'leasehold_leases_active', { kind: 'retrieve' }), 4);
  assert.equal(seriesValue(page, 'leasehold_leases_active', { kind: 'use' }), 1);
  assert.equal(seriesValue(page, 'leasehold_sessions_open'), 1);
  assert.ok(seriesValue(page, 'leasehold_inventory_age_seconds') < 60);
});
