// Signing in to the console without a passkey or a token: at an identity provider, and with a code from the CLI.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser } from '../kit/browser.ts';
import { startProvider } from '../kit/oidc-provider.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { invite, toLocalhost } from '../kit/sign-in.ts';

const provider = await startProvider({ after });
const service = await startTestService({ after }, provider.flags);
const browser = await startBrowser({ after });
const at = (path: string): string => `${toLocalhost(service.address)}/console${path}`;
provider.allow(at('/callback'));
const signInAtProvider = { name: `Sign in with ${new URL(provider.issuer).host}` };
/** The account of the provider in a browser. */
const identity = { subject: 'none' };

test('the provider signs an operator in, who returns to the page that was asked for', async (t) => {
  await service.admin.post('/api/v1/operators', { name: 'ana', roles: ['viewer'], identity });
  const { page } = await browser.open(t, at('/agents?q=bot'));
  await page.getByRole('button', signInAtProvider).click();
  await page.getByRole('banner').getByText('ana', { exact: true }).waitFor();
  await page.waitForURL(/\/console\/agents\?q=bot$/);
  const kept = await page.evaluate<string>('JSON.stringify({ ...sessionStorage })');
  assert.equal(kept, '{}');
});

test('at a URL where neither a passkey nor the provider works, the page names the URLs where they do', async (t) => {
  const { page } = await browser.open(t, `${service.address}/console/`);
  await page.getByText('Passkeys and the identity provider are not available at this URL.').waitFor();
  assert.equal(await page.getByRole('button', signInAtProvider).count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Sign in with a passkey' }).count(), 0);
});

test('a return that this tab did not ask for signs no one in', async (t) => {
  const { page } = await browser.open(t, at('/callback?code=of-an-attacker&state=of-an-attacker'));
  await page.getByRole('alert').getByText('this sign-in was not started in this tab, or it was interrupted').waitFor();
  await page.getByRole('link', { name: 'Sign in another way' }).click();
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
});

test('a code from the CLI signs in once, and is no longer in the URL', async (t) => {
  const operator = await addOperator(service, 'bea', ['viewer']);
  const { code } = (await operator.post('/api/v1/auth/handoff', {})).body.data;
  const { page } = await browser.open(t, at(`/#handoff=${code}`));
  const accept = { name: 'Sign in with this link' };
  await page.getByRole('button', accept).waitFor();
  assert.equal((await service.admin.get('/api/v1/audit?event_type=auth.verify&agent=operator:bea')).body.meta.total, 1);
  await page.getByRole('button', accept).click();
  await page.getByRole('banner').getByText('bea', { exact: true }).waitFor();
  assert.equal(page.url().includes(code), false);
  const second = await browser.open(t, at(`/#handoff=${code}`));
  // The browser reports the status of the used code.
  const isReported = second.expectReport(/^console: .* 401 /);
  await second.page.getByRole('button', accept).click();
  await second.page.getByRole('alert').getByText('AUTH_FAILED').waitFor();
  await isReported();
});

test('the token of an agent opens no session of a browser', async (t) => {
  const agent = await service.agent('bot');
  const opened = await browser.open(t, at('/'));
  const isReported = opened.expectReport(/^console: .* 403 /);
  await opened.page.getByLabel('Token').fill(agent.token);
  await opened.page.keyboard.press('Enter');
  await opened.page.getByRole('alert').getByText('ACCESS_DENIED').waitFor();
  await isReported();
  await signIn(opened, service.adminToken);
});

test('a link that signs in has no effect where an operator is signed in', async (t) => {
  const attacker = await addOperator(service, 'eve', ['viewer']);
  const { code } = (await attacker.post('/api/v1/auth/handoff', {})).body.data;
  const opened = await browser.open(t, at('/'));
  await signIn(opened, service.adminToken);
  await opened.page.goto(at(`/#handoff=${code}`));
  await opened.page.reload();
  await opened.page.getByRole('button', { name: 'Sign out' }).waitFor();
  assert.equal(await opened.page.getByRole('button', { name: 'Sign in with this link' }).count(), 0);
  assert.equal((await service.anonymous.post('/api/v1/auth/handoff/redeem', { code })).status, 200);
});

test('the link of an enrolment names its operator before a passkey is registered', async (t) => {
  const { page } = await browser.open(t, at(`/enrol#${await invite(service, 'carla')}`));
  await page.getByText('The passkey signs in as the operator carla.').waitFor();
});

test('the administrator’s token is in this tab alone, and signed out after 30 minutes without activity', async (t) => {
  const opened = await browser.open(t, at('/settings'));
  const { page } = opened;
  await page.clock.install();
  await page.reload();
  await signIn(opened, service.adminToken);
  assert.equal(await page.evaluate<number>('localStorage.length'), 0);
  assert.equal(await page.evaluate<number>('sessionStorage.length'), 1);
  await page.clock.fastForward('29:00');
  await page.keyboard.press('Shift');
  await page.clock.fastForward('29:00');
  await page.getByRole('banner').getByText('admin', { exact: true }).first().waitFor();
  await page.clock.fastForward('02:00');
  await page.getByText('The page was not used for 30 minutes.').waitFor();
  assert.equal(await page.evaluate<number>('sessionStorage.length'), 0);
});
