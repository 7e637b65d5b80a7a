// The ends of challenges, enrolment codes and one-time codes of sign-ins. SOURCE: docs/api.md, "Signing in to the
// console".

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Authenticator } from '../kit/authenticator.ts';
import { addOperator } from '../kit/operators.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { AUTH, addWithPasskey, invite, openBrowser, sessionHeaders } from '../kit/sign-in.ts';
import { startTestClock } from '../kit/test-clock.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The vault's clock advances with the real time too, so that an end is up to a minute after the moved time. */
const SLACK = MINUTE;

/** `pass` moves the clock, and makes an entry, from which a server that shares its database learns the time. */
async function start(t: TestContext) {
  const clock = startTestClock(t);
  const service = await startTestService(t);
  const agent = await service.agent('ci');
  const pass = async (milliseconds: number): Promise<void> => {
    await clock.move(milliseconds);
    await agent.get('/api/v1/agents');
  };
  return { service, pass, browser: openBrowser(service) };
}

test('the challenge of a passkey ends after 5 minutes, and a session of 30 minutes begins with it', async (t) => {
  const { service, pass, browser } = await start(t);
  const { origin } = browser;
  const authenticator = await addWithPasskey(service, 'ann');
  const verify = ({ challenge_id, options }: { challenge_id: string; options: { rpId: string; challenge: string } }) =>
    browser.post(`${AUTH}/passkey/verify`, { challenge_id, response: authenticator.signIn(options, { origin }) });
  const [early, late] = [await browser.options(), await browser.options()];
  await pass(5 * MINUTE - SLACK);
  const opened = await verify(early);
  assert.equal(opened.status, 200);
  await pass(2 * SLACK);
  assertRejected(await verify(late), 'AUTH_FAILED');
  const [entry] = (await service.admin.get('/api/v1/audit?event_type=auth.verify&limit=1')).body.data;
  assert.deepEqual([entry.agent_name, entry.reason], ['operator:ann', 'the sign-in has expired']);
  const headers = { ...sessionHeaders(opened), 'sec-fetch-site': 'same-origin' };
  await pass(20 * MINUTE);
  assert.equal((await browser.call('GET', '/api/v1/auth/session', undefined, headers)).status, 200);
  await pass(10 * MINUTE + SLACK);
  assertRejected(await browser.call('GET', '/api/v1/auth/session', undefined, headers), 'SESSION_EXPIRED');
});

test('an enrolment code ends after 24 hours', async (t) => {
  const { service, pass, browser } = await start(t);
  const [early, late] = [await invite(service, 'ann'), await invite(service, 'bob')];
  await pass(24 * HOUR - SLACK);
  assert.equal((await browser.enrol(early, new Authenticator())).status, 201);
  await pass(2 * SLACK);
  assertRejected(await browser.enrol(late, new Authenticator()), 'AUTH_FAILED');
});

test('a one-time code ends after a minute, and codes never extend a session', async (t) => {
  const { service, pass } = await start(t);
  const operator = await addOperator(service, 'ann', ['viewer']);
  const redeem = (code: string) => service.anonymous.post(`${AUTH}/handoff/redeem`, { code });
  const { code } = (await operator.post(`${AUTH}/handoff`)).body.data;
  await pass(MINUTE + SLACK);
  const lastSeq = async () => (await service.admin.get('/api/v1/audit?limit=1')).body.data[0].seq;
  const before = await lastSeq();
  assertRejected(await redeem(code), 'AUTH_FAILED');
  assert.equal(await lastSeq(), before);
  const { ends_at } = (await operator.get('/auth/session')).body.data;
  for (let elapsed = MINUTE; elapsed < 12 * HOUR - 25 * MINUTE; elapsed += 25 * MINUTE) {
    await pass(25 * MINUTE);
    assert.equal((await operator.post('/auth/session/renew')).status, 200);
  }
  const last = (await operator.post(`${AUTH}/handoff`)).body.data.code;
  const opened = (await redeem(last)).body.data;
  assert.equal(opened.expires_at, ends_at);
});
