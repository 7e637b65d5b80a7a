// The frame of the console in a real browser: signing in, the keyboard, and the policy of content.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const browser = await startBrowser({ after });
const at = (path: string): string => `${service.address}/console${path}`;

test('a token signs in, stays out of storage and the URL, and its cookie ends with the sign-out', async (t) => {
  const opened = await browser.open(t, at('/log'));
  const { page } = opened;
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
  await signIn(opened, service.adminToken);
  assert.match(await page.getByRole('banner').innerText(), /admin/);
  const kept = await page.evaluate<string>(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href])',
  );
  assert.equal(kept.includes(service.adminToken), false);
  assert.equal((await page.content()).includes(service.adminToken), false);
  await page.reload();
  await page.getByRole('heading', { name: 'Audit log' }).waitFor();
  const cookies = () => page.context().cookies(`${service.address}/api/v1`);
  assert.deepEqual(
    (await cookies()).map(({ httpOnly, sameSite }) => [httpOnly, sameSite]),
    [[true, 'Strict']],
  );
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
  assert.deepEqual(await cookies(), []);
});

test('a wrong token is rejected with a code and a request id', async (t) => {
  const { page, expectReport } = await browser.open(t, at('/'));
  // The browser reports the status, too.
  const isReported = expectReport(/^console: .* 401 /);
  await page.getByLabel('Token').fill('lha_wrong');
  await page.getByRole('button', { name: 'Sign in with the token' }).click();
  const alert = page.getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.innerText(), /UNAUTHENTICATED[\s\S]*Request/);
  await isReported();
});

test('everything is reached by the keyboard alone', async (t) => {
  const opened = await browser.open(t, at('/log'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'Audit log' }).waitFor();
  await untilTrue(page, `document.activeElement.textContent === 'Audit log'`);
  const stops: string[] = [];
  while (stops.length < 30 && stops.at(-1) !== 'Skip to the content') {
    await page.keyboard.press('Shift+Tab');
    stops.push(await page.evaluate<string>('document.activeElement.textContent'));
  }
  assert.ok(['Audit log', 'Now', 'Sign out'].every((name) => stops.includes(name)));
  await page.keyboard.press('Enter');
  await untilTrue(page, `document.activeElement.id === 'main'`);
  await page.keyboard.press('/');
  await page.getByRole('combobox', { name: /^Search pages/ }).waitFor();
  await page.keyboard.type('settings');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Settings' }).waitFor();
  await page.waitForURL(({ pathname }) => pathname === '/console/settings');
  await untilTrue(page, `document.activeElement.textContent === 'Settings'`);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Search pages/ }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Sign out' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
});

test('an operator is named with its roles, and returns to the same page after its session has ended', async (t) => {
  const operator = await addOperator(service, 'ana', ['viewer', 'approver']);
  const opened = await browser.open(t, at('/log?result=denied'));
  const { page, expectReport } = opened;
  await signIn(opened, operator.token);
  assert.match(await page.getByRole('banner').innerText(), /ana viewer, approver/);
  await page.getByRole('heading', { name: 'No matching entries' }).waitFor();
  const isReported = expectReport(/^console: .* 401 /);
  await operator.delete('/auth/session');
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByText('Your session has ended.').waitFor();
  await signIn(opened, await operator.enter());
  await page.getByRole('heading', { name: 'Audit log' }).waitFor();
  await page.waitForURL(({ search }) => search === '?result=denied');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
  // The browser reports the status of the ended session.
  await isReported();
});

test('the policy stops markup from text, and the page reports it', async (t) => {
  const { page, expectReport } = await browser.open(t, at('/'));
  const isReported = expectReport(/^violation of require-trusted-types-for/);
  expectReport(/^console: .*TrustedHTML/);
  await assert.rejects(page.evaluate(`document.body.innerHTML = '<b>text</b>'`), /TrustedHTML/);
  await isReported();
});
