// The console in a browser whose clock is wrong: the session is renewed no more than once a minute, and every time that
// is left is the server's.

import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { signIn, startBrowser, watchRequests } from '../kit/browser.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const MINUTE_MS = 60_000;
const CHECK_MS = 20_000;

const clock = startTestClock({ after });
const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
let made = 0;

const renewalsOf = async (name: string): Promise<number> =>
  (await admin.get(`/api/v1/audit?event_type=session.renew&agent=operator:${name}&limit=1`)).body.meta.total;

/** A page of an operator, whose clock differs from the server's. */
async function openPage(t: TestContext, aheadMinutes: number, address: string) {
  const name = `operator-${++made}`;
  const operator = await addOperator(service, name, ['viewer', 'approver']);
  const opened = await browser.open(t, `${service.address}/console${address}`);
  const { page } = opened;
  await page.clock.install({ time: Date.now() + aheadMinutes * MINUTE_MS });
  const renewals = watchRequests(page, /session\/renew$/);
  await page.reload();
  await signIn(opened, operator.token);
  /** Its operator presses a key before each check of the session. */
  const work = async (minutes: number): Promise<void> => {
    for (let passed = 0; passed < minutes * MINUTE_MS; passed += CHECK_MS) {
      await page.keyboard.press('Shift');
      await page.clock.runFor(CHECK_MS);
      await renewals.idle();
    }
  };
  return { name, page, renewals, work };
}

for (const aheadMinutes of [20, -20]) {
  test(`a clock that is ${aheadMinutes} minutes ahead renews a session when it is near its end, and once`, async (t) => {
    const { name, page, renewals, work } = await openPage(t, aheadMinutes, '/settings?section=sign-in');
    await work(3);
    assert.equal(renewals.started(), 0, 'half an hour is left');
    // The clock jumps, and the time that passes is the same.
    await page.clock.setSystemTime(Date.now() + 45 * MINUTE_MS);
    await work(1);
    assert.equal(renewals.started(), 0);
    await clock.move(22 * MINUTE_MS);
    await page.clock.fastForward(18 * MINUTE_MS);
    await work(3);
    assert.equal(renewals.started(), 1);
    assert.equal(await renewalsOf(name), 1);
  });
}

test('a session that seems to be always near its end is renewed once a minute', async (t) => {
  const { name, page, renewals, work } = await openPage(t, 0, '/settings?section=sign-in');
  const at = (minutes: number): string => new Date(Date.now() + minutes * MINUTE_MS).toISOString();
  const data = {
    agent_name: `operator:${name}`,
    roles: ['viewer'],
    expires_at: at(1),
    expires_in: 60,
    ends_at: at(600),
  };
  await page.route(/auth\/session$/, (route) => route.fulfill({ json: { data } }));
  await page.reload();
  await page.getByText('Ends at the latest').waitFor();
  await work(5);
  assert.ok(renewals.started() >= 4 && renewals.started() <= 6, `${renewals.started()} in five minutes`);
  // This is the first minute of the session.
  assert.equal(await renewalsOf(name), 0);
});

test('what is left for an approval is by the clock of the server', async (t) => {
  const agent = await service.agent('asker');
  await admin.post('/api/v1/credentials', { path: 'asked/key', value: 'v' });
  await demandApproval(service, 'asker', ['asked/*']);
  const { page } = await openPage(t, 20, '/approvals');
  const held = await askToRetrieve(service, agent.token, 'asked/key');
  t.after(() => held.abandon());
  // The inbox reads again by a timer.
  await page.clock.runFor(10_000);
  await page
    .getByRole('timer')
    .getByText(/^[1-5]:\d\d left$/)
    .waitFor();
});
