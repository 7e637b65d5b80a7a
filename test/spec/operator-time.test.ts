// The sessions of operators, which are renewed, and the administrator's token next to operators.
// SOURCE: docs/api.md, "Operators" and "Logging in".

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { TestResponse } from '../kit/client.ts';
import { executeSql } from '../kit/direct-db.ts';
import { addOperator } from '../kit/operators.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { AUTH, openBrowser, sessionHeaders } from '../kit/sign-in.ts';
import { STORE } from '../kit/stores.ts';
import { startTestClock } from '../kit/test-clock.ts';

const SESSION = '/auth/session';
const RENEW = '/auth/session/renew';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** `pass` moves the clock, and makes an entry, from which a server that shares its database learns the time. */
async function start(t: TestContext) {
  const clock = startTestClock(t);
  const service = await startTestService(t);
  const agent = await service.agent('ci');
  const pass = async (milliseconds: number): Promise<void> => {
    await clock.move(milliseconds);
    await agent.get('/api/v1/agents');
  };
  return { clock, service, agent, pass };
}

test('the session of an operator ends 30 minutes after the login, regardless of use', async (t) => {
  const { clock, service, pass } = await start(t);
  const operator = await addOperator(service, 'ann', ['viewer']);
  const { expires_at, ends_at } = (await operator.get(SESSION)).body.data;
  assert.equal(Date.parse(ends_at) - Date.parse(expires_at), 11.5 * HOUR);
  await pass(29 * MINUTE);
  assert.equal((await operator.get('/api/v1/agents')).status, 200);
  await clock.moveTo(expires_at);
  await pass(0);
  assertRejected(await operator.get(SESSION), 'SESSION_EXPIRED');
  assertRejected(await operator.post(RENEW), 'SESSION_EXPIRED');
  assertRejected(await operator.get('/api/v1/agents'), 'SESSION_EXPIRED');
});

test('a renewal extends it to 30 minutes from then, and 12 hours after the login it ends', async (t) => {
  const { clock, service, pass } = await start(t);
  const operator = await addOperator(service, 'ann', ['viewer']);
  const { expires_at: first, ends_at, session_id } = (await operator.get(SESSION)).body.data;
  let expiresAt = Date.parse(first);
  for (let renewals = 0; expiresAt < Date.parse(ends_at); renewals++) {
    assert.ok(renewals < 30);
    await pass(25 * MINUTE);
    const { status, text, body } = await operator.post(RENEW);
    assert.equal(status, 200, text);
    const { data } = body;
    assert.deepEqual([data.session_id, data.agent_name, data.ends_at], [session_id, 'operator:ann', ends_at]);
    const gained = Date.parse(data.expires_at) - expiresAt;
    const isLast = data.expires_at === ends_at;
    assert.ok(isLast ? gained <= 25 * MINUTE : Math.abs(gained - 25 * MINUTE) < MINUTE, `${gained} ms`);
    expiresAt = Date.parse(data.expires_at);
  }
  await clock.moveTo(new Date(Date.parse(ends_at) - MINUTE).toISOString());
  await service.admin.get('/api/v1/credentials');
  assert.equal((await operator.post(RENEW)).body.data.expires_at, ends_at);
  await clock.moveTo(ends_at);
  await service.admin.get('/api/v1/credentials');
  assertRejected(await operator.get(SESSION), 'SESSION_EXPIRED');
  assertRejected(await operator.post(RENEW), 'SESSION_EXPIRED');
});

/** The renewals of a session: of one outside a browser, and of those that a browser opens. */
const RENEWERS = {
  'the login of a key': async (service: TestService) => {
    const operator = await addOperator(service, 'ann', ['viewer']);
    return () => operator.post(RENEW);
  },
  'a code from the CLI': async (service: TestService) => {
    const operator = await addOperator(service, 'hal', ['admin']);
    const { code } = (await operator.post(`${AUTH}/handoff`, {})).body.data;
    return inBrowser(service, await openBrowser(service).post(`${AUTH}/handoff/redeem`, { code }));
  },
};

function inBrowser(service: TestService, opened: TestResponse) {
  const headers = { ...sessionHeaders(opened), 'sec-fetch-site': 'same-origin' };
  return () => openBrowser(service).call('POST', `/api/v1${RENEW}`, undefined, headers);
}

for (const [kind, open] of Object.entries(RENEWERS)) {
  test(`a session from ${kind} is renewed once a minute: another renewal changes and records nothing`, async (t) => {
    const { clock, service } = await start(t);
    const renew = await open(service);
    const ends = new Set<string>();
    const left: number[] = [];
    const entries = await auditEntriesOf(service, async () => {
      for (let halves = 0; halves < 5; halves++) {
        for (const { status, text, body } of await Promise.all([renew(), renew(), renew()])) {
          assert.equal(status, 200, text);
          ends.add(body.data.expires_at);
          left.push(body.data.expires_in);
        }
        await clock.move(30_000);
      }
    });
    // It is renewed after 60 and 120 seconds. 30 seconds less are left between the two.
    assert.equal(Math.max(...left), 1800, left.join(' '));
    assert.ok(
      left.slice(3, 6).every((each) => each <= 1770),
      left.join(' '),
    );
    assert.equal(entries.filter(({ event_type }) => event_type === 'session.renew').length, 2);
    assert.equal(ends.size, 3);
  });
}

test('a renewed session is valid after a restart, and verification finds every row of sessions as recorded', async (t) => {
  const { service, pass } = await start(t);
  const operator = await addOperator(service, 'ann', ['viewer']);
  await pass(20 * MINUTE);
  const { expires_at } = (await operator.post(RENEW)).body.data;
  await service.stop();
  const again = await startTestService(t, [], service.dataDir);
  assert.equal((await again.as(operator.token).get(SESSION)).body.data.expires_at, expires_at);
  const { state } = (await again.admin.get('/api/v1/audit/verify?state=true')).body.data;
  assert.deepEqual(state.problems, []);
});

if (STORE === 'postgres') {
  test('a session that one node renews is valid on another after the end that the other knew', async (t) => {
    const { service, pass } = await start(t);
    const operator = await addOperator(service, 'ann', ['viewer']);
    const other = await startAnotherNode(t, service);
    assert.equal((await other.as(operator.token).get(SESSION)).status, 200);
    await pass(25 * MINUTE);
    assert.equal((await operator.post(RENEW)).status, 200);
    await pass(10 * MINUTE);
    for (const node of [service, other]) {
      await node.admin.get('/api/v1/credentials');
      assert.equal((await node.as(operator.token).get(SESSION)).status, 200);
    }
    // The server must stop before its database is dropped.
    await other.stop();
  });
}

test('the row of a session that is older than an hour is named when it was taken away', async (t) => {
  const { service, pass } = await start(t);
  const operator = await addOperator(service, 'ann', ['viewer']);
  for (let renewals = 0; renewals < 4; renewals++) {
    await pass(25 * MINUTE);
    assert.equal((await operator.post(RENEW)).status, 200);
  }
  await executeSql(service.dataDir, 'DELETE FROM sessions WHERE ends_at IS NOT NULL');
  const { problems } = (await service.admin.get('/api/v1/audit/verify?state=true')).body.data.state;
  assert.deepEqual(
    problems.map(({ problem }: { problem: string }) => problem),
    ['missing'],
  );
});

test('a use of the administrator’s token is recorded once in 15 minutes, only while an operator has the role admin', async (t) => {
  const { service, agent, pass } = await start(t);
  const { admin } = service;
  /** Read by an operator, since the question is a use of the token too. */
  const viewer = await addOperator(service, 'viewer', ['viewer']);
  const count = async (reader: typeof viewer): Promise<number> => {
    const { status, text, body } = await reader.get('/api/v1/audit?event_type=operator.break_glass');
    assert.equal(status, 200, text);
    return body.meta.total;
  };
  await admin.get('/api/v1/agents');
  await pass(16 * MINUTE);
  await admin.get('/api/v1/agents');
  assert.equal(await count(viewer), 0);

  const boss = await addOperator(service, 'boss', ['admin']);
  assert.equal(await count(boss), 0);
  await admin.get('/api/v1/agents');
  assert.equal(await count(boss), 1);
  for (const call of [() => admin.get('/api/v1/agents'), () => admin.post('/api/v1/agents', { name: 'other' })]) {
    assert.ok((await call()).status < 300);
  }
  await pass(14 * MINUTE);
  await admin.get('/api/v1/agents');
  assert.equal(await count(boss), 1);
  await pass(2 * MINUTE);
  // Uses by others are not uses of the token.
  await agent.get('/api/v1/agents');
  await boss.get('/api/v1/agents');
  assert.equal(await count(boss), 1);
  const answers = await Promise.all(Array.from({ length: 5 }, () => admin.get('/api/v1/agents')));
  assert.ok(answers.every(({ status }) => status === 200));
  assert.equal(await count(boss), 2);
  const [entry] = (await boss.get('/api/v1/audit?event_type=operator.break_glass')).body.data;
  assert.deepEqual([entry.agent_name, entry.resource, entry.result], ['admin', '*', 'allowed']);
  assert.deepEqual([entry.remote_addr, typeof entry.request_id], ['127.0.0.1', 'string']);
  assert.equal((await boss.get('/api/v1/audit/verify')).body.data.valid, true);
});
