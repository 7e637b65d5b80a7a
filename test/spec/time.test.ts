// Expiry, tested with a clock that the test moves. SOURCE: docs/decisions.md, "The process", "Agents and sessions" and
// "Leases".

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { logIn, readAgentKey } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;

/** A server with one agent that may retrieve `a`, and its clock. */
async function start(t: TestContext) {
  const clock = startTestClock(t);
  const service = await startTestService(t);
  await service.admin.post('/api/v1/credentials', { path: 'a', value: 'v' });
  const agent = await service.agent('ci', { a: ['retrieve'] });
  return { clock, service, agent };
}

test('a session lasts one hour regardless of use; then it is 401 SESSION_EXPIRED, unrecorded', async (t) => {
  const { clock, service, agent } = await start(t);
  const { expires_at } = (await agent.get('/auth/session')).body.data;
  await clock.move(HOUR - 30 * SECOND);
  assert.equal((await agent.get('/api/v1/credentials/a')).status, 200);
  await clock.moveTo(expires_at);
  const entries = await auditEntriesOf(service, async () => {
    assertRejected(await agent.get('/api/v1/credentials/a'), 'SESSION_EXPIRED');
    assertRejected(await agent.get('/auth/session'), 'SESSION_EXPIRED');
    assertRejected(await agent.delete('/auth/session'), 'SESSION_EXPIRED');
  });
  assert.deepEqual(entries, []);
  const token = await logIn(service.address, 'ci', readAgentKey(service.dataDir, 'ci'));
  assert.equal((await service.as(token).get('/api/v1/credentials/a')).status, 200);
});

test('a lease ends exactly at its expires_at', async (t) => {
  const { clock, service, agent } = await start(t);
  const { lease_id, expires_at } = (await agent.get('/api/v1/credentials/a')).body.data;
  const status = async () => (await service.admin.get(`/api/v1/leases/${lease_id}`)).body.data.status;
  await clock.move(290 * SECOND);
  assert.equal(await status(), 'active');
  await clock.moveTo(expires_at);
  assert.equal(await status(), 'expired');
});

test('ended leases are listed for 7 days and then are unknown', async (t) => {
  const { clock, service, agent } = await start(t);
  const { lease_id: expiring } = (await agent.get('/api/v1/credentials/a?ttl=1')).body.data;
  const { lease_id: revoked } = (await agent.get('/api/v1/credentials/a')).body.data;
  await agent.delete(`/api/v1/leases/${revoked}`);
  const listed = async () =>
    (await service.admin.get('/api/v1/leases')).body.data.map((lease: { lease_id: string }) => lease.lease_id);
  // On a busy machine minutes may lie between the two ends.
  await clock.move(7 * DAY - 300 * SECOND);
  assert.deepEqual(await listed(), [revoked, expiring]);
  await clock.move(600 * SECOND);
  assert.deepEqual(await listed(), []);
  for (const id of [expiring, revoked]) {
    assertRejected(await service.admin.get(`/api/v1/leases/${id}`), 'NOT_FOUND');
    assertRejected(await service.admin.post(`/api/v1/leases/${id}/renew`), 'NOT_FOUND');
  }
});

test('the server does not start with a clock far behind the log unless --accept-clock is given', async (t) => {
  const clock = startTestClock(t);
  const directory = join(temporaryDirectory(t), 'data');
  const first = await startTestService(t, [], directory);
  await first.stop();
  await clock.move(-HOUR);
  await assert.rejects(startTestService(t, [], directory), /clock is 60 minutes behind/);
  const second = await startTestService(t, ['--accept-clock'], directory);
  assert.equal((await second.admin.get('/api/v1/audit/verify')).body.data.valid, true);
});
