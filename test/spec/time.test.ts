// Expiry, tested with a clock that the test moves. SOURCE: docs/decisions.md, "The process", "Agents and sessions" and
// "Leases".

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { logIn, readAgentKey } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;

const before = (timestamp: string, ms: number): string => new Date(Date.parse(timestamp) - ms).toISOString();

/** A service with one agent that may retrieve `a`, and its clock. */
async function start(t: TestContext) {
  const clock = startTestClock(t);
  const service = await startTestService(t);
  await service.admin.post('/api/v1/credentials', { path: 'a', value: 'v' });
  const agent = await service.agent('ci', { a: ['retrieve'] });
  return { clock, service, agent };
}

/** Requests a challenge now and verifies it when the returned function is called. */
async function challenge({ anonymous, dataDir }: TestService) {
  const { body } = await anonymous.post('/auth/challenge', { agent_name: 'ci' });
  const { challenge_id, nonce, expires_at } = body.data;
  const signature = sign(null, Buffer.from(nonce, 'base64'), readAgentKey(dataDir, 'ci')).toString('base64');
  const answer = () => anonymous.post('/auth/verify', { challenge_id, agent_name: 'ci', signature });
  return { answer, expiresAt: expires_at };
}

test('a challenge is valid until right before its 60 seconds end; then it is 401 and recorded', async (t) => {
  const { clock, service } = await start(t);
  const [early, late] = [await challenge(service), await challenge(service)];
  await clock.moveTo(before(early.expiresAt, 10 * SECOND));
  assert.equal((await early.answer()).status, 200);
  await clock.moveTo(late.expiresAt);
  const [entry] = await auditEntriesOf(service, async () => assertRejected(await late.answer(), 'AUTH_FAILED'));
  assert.deepEqual(
    [entry.event_type, entry.result, entry.reason],
    ['auth.verify', 'denied', 'the challenge has expired'],
  );
});

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

test('an expired session of a deleted agent is 401 UNAUTHENTICATED', async (t) => {
  const { clock, service, agent } = await start(t);
  await clock.move(2 * HOUR);
  await service.admin.delete('/api/v1/agents/ci');
  assertRejected(await agent.get('/api/v1/credentials/a'), 'UNAUTHENTICATED');
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

test('a lease of a year does not end early', async (t) => {
  const { clock, service } = await start(t);
  const policy = { principal: 'agent:ci', resources: ['b'], actions: ['retrieve'], max_ttl: 31_536_000 };
  await service.admin.put('/api/v1/policies/year', policy);
  await service.admin.post('/api/v1/credentials', { path: 'b', value: 'v' });
  const agent = service.as(await logIn(service.address, 'ci', readAgentKey(service.dataDir, 'ci')));
  const { lease_id, expires_at } = (await agent.get('/api/v1/credentials/b')).body.data;
  const status = async () => (await service.admin.get(`/api/v1/leases/${lease_id}`)).body.data.status;
  await clock.move(364 * DAY);
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

test('the service does not start with a clock far behind the log unless --accept-clock is given', async (t) => {
  const clock = startTestClock(t);
  const directory = join(temporaryDirectory(t), 'data');
  const first = await startTestService(t, [], directory);
  await first.stop();
  await clock.move(-HOUR);
  await assert.rejects(startTestService(t, [], directory), /clock is 60 minutes behind/);
  const second = await startTestService(t, ['--accept-clock'], directory);
  assert.equal((await second.admin.get('/api/v1/audit/verify')).body.data.valid, true);
});
