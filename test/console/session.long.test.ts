// The session of the console over time: renewed while its operator is active, and left to end otherwise.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const MINUTE_MS = 60_000;

const clock = startTestClock({ after });
const service = await startTestService({ after });
const browser = await startBrowser({ after });

/** Moves the clocks of the server and of the page. */
async function pass(page: Page, minutes: number): Promise<void> {
  await clock.move(minutes * MINUTE_MS);
  await page.clock.fastForward(minutes * MINUTE_MS);
}

test('a session is renewed by activity, announced before its idle end, and ended when nothing is done', async (t) => {
  const operator = await addOperator(service, 'ana', ['viewer']);
  const opened = await browser.open(t, `${service.address}/console/settings?section=sign-in`);
  const { page, expectReport } = opened;
  await page.clock.install();
  await page.reload();
  await signIn(opened, operator.token);
  const renewals = async (): Promise<number> => {
    const { body } = await service.admin.get('/api/v1/audit?event_type=session.renew&agent=operator:ana&limit=1');
    return body.meta.total;
  };
  const renewal = () => page.waitForResponse((response) => /session\/renew$/.test(response.url()));
  await page.getByText('Ends at the latest').waitFor();
  await pass(page, 15);
  assert.equal(await renewals(), 0, 'half of the time is left');

  const idleEnd = page.getByRole('region', { name: 'Session' }).locator('time').first();
  const firstEnd = await idleEnd.getAttribute('datetime');
  assert.ok(firstEnd !== null);
  const released = Promise.withResolvers<void>();
  // The page learns the new end when its operator has long been idle, which is not activity.
  await page.route(/auth\/session$/, (route) => released.promise.then(() => route.continue()));
  await pass(page, 7);
  await page.keyboard.press('Shift');
  const renewed = renewal();
  await page.clock.fastForward(MINUTE_MS / 2);
  assert.equal((await renewed).status(), 200);
  assert.equal(await renewals(), 1);

  await pass(page, 29);
  released.resolve();
  await untilTrue(page, `!document.querySelector('time[datetime="${firstEnd}"]')`);
  const notice = page.getByRole('status').filter({ hasText: /^Your session ends in \d min, because you were idle/ });
  await notice.waitFor();
  assert.equal(await renewals(), 1, 'an idle session is not renewed');
  const stayed = renewal();
  await notice.getByRole('button', { name: 'Stay signed in' }).click();
  assert.equal((await stayed).status(), 200);
  await notice.waitFor({ state: 'detached' });

  // The browser reports the status of the ended session.
  const isReported = expectReport(/^console: .* 401 /);
  await pass(page, 31);
  await page.getByText('Your session has ended. Sign in again to continue where you were.').waitFor();
  await page.waitForURL(/section=sign-in$/);
  await isReported();
});

test('a tab follows who signs in and out in another tab, and shows no data of the previous operator', async (t) => {
  const [eve, adam] = [await addOperator(service, 'eve', ['viewer']), await addOperator(service, 'adam', ['admin'])];
  const address = `${service.address}/console/settings?section=operators`;
  const opened = await browser.open(t, address);
  const { page } = opened;
  await signIn(opened, adam.token);
  await page.getByText('Add an operator').first().waitFor();
  const other = await page.context().newPage();
  await other.goto(address);
  await other.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You signed out in another tab.').waitFor();
  await signIn({ page: other }, eve.token);
  await page.getByRole('banner').getByText('eve', { exact: true }).waitFor();
  assert.equal(await page.getByRole('banner').getByText('adam', { exact: true }).count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Add an operator' }).isDisabled(), true);
});

test('a reload while the server does not respond keeps the session, and tries again', async (t) => {
  const operator = await addOperator(service, 'ida', ['viewer']);
  const opened = await browser.open(t, `${service.address}/console/log`);
  const { page, expectReport } = opened;
  await signIn(opened, operator.token);
  const isReported = expectReport(/^console: .* 503 /);
  const body = JSON.stringify({ error: { code: 'UNAVAILABLE', message: 'The service is starting.' } });
  await page.route(/auth\/session$/, (route) =>
    route.fulfill({ status: 503, contentType: 'application/json', headers: { 'retry-after': '0' }, body }),
  );
  await page.reload();
  await page.getByRole('alert').getByText('UNAVAILABLE').waitFor();
  await page.unroute(/auth\/session$/);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('banner').getByText('ida', { exact: true }).waitFor();
  await isReported();
});

test('the absolute end is announced as one that nothing extends', async (t) => {
  const operator = await addOperator(service, 'max', ['viewer']);
  const opened = await browser.open(t, `${service.address}/console/settings`);
  const { page } = opened;
  // The end on the browser's clock, because the test has moved its own.
  const end = new Date((await page.evaluate<number>('Date.now()')) + MINUTE_MS).toISOString();
  const data = { agent_name: 'operator:max', roles: ['viewer'], expires_at: end, expires_in: 60, ends_at: end };
  await page.route(/auth\/session$/, (route) => route.fulfill({ json: { data } }));
  await signIn(opened, operator.token);
  await page.getByText('Your session ends in 1 min, because sessions last at most 12 hours.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Stay signed in' }).count(), 0);
});
