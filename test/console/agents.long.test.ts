// The agents page in a real browser: registration, details, replaced keys, deregistration, and panic.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const HOSTILE = `<img src=x onerror=alert(1)>\u202e${'wide'.repeat(120)}`.slice(0, 512);

const service = await startTestService({ after });
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/agents${query}`;

test('without an agent the page teaches to register one, and registers it with its own key', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'No agents yet' }).waitFor();
  await page.getByText('leasehold agent add deploy-bot').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('button', { name: 'Register an agent' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('deploy-bot');
  await dialog.getByLabel(/^Description/).fill(HOSTILE);
  const { publicKey } = newOperatorKey();
  await dialog.getByLabel(/^Public key/).fill(publicKey);
  assert.deepEqual(await violationsOf(page), []);
  await dialog.getByRole('button', { name: 'Register' }).click();
  const panel = page.getByRole('complementary', { name: 'deploy-bot' });
  await panel.getByText(publicKey).waitFor();
  await page.waitForURL(/agent=deploy-bot$/);
  await page.getByText('1 agent', { exact: true }).waitFor();
  await panel.getByText('No leases.').waitFor();
  await panel.getByText(/No login yet\./).waitFor();
  await panel.getByText('No credentials were seen or used.').waitFor();
  assert.equal(await page.locator('img').count(), 0);
  assert.deepEqual(await violationsOf(page), []);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});

test('the server makes a key where the page says, and it is replaced and removed with its agent', async (t) => {
  const opened = await browser.open(t, at(''), { colorScheme: 'dark' });
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('button', { name: 'Register an agent' }).click();
  await page.getByLabel('Name', { exact: true }).fill('made');
  await page.getByLabel(/^A key pair made by the server/).check();
  await page.getByText('agents/NAME/private_key.pem').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Register' }).click();
  const panel = page.getByRole('complementary', { name: 'made' });
  await panel.getByRole('button', { name: 'Replace the key' }).click();
  const file = join(service.dataDir, 'agents', 'made', 'private_key.pem');
  assert.equal(existsSync(file), true);
  const dialog = page.getByRole('dialog');
  const { publicKey } = newOperatorKey();
  // The browser reports the status of the rejected key.
  const isReported = opened.expectReport(/^console: .* 400 /);
  await dialog.getByLabel(/^Public key/).fill('not a key');
  await dialog.getByRole('button', { name: 'Replace' }).click();
  await dialog.getByRole('alert').getByText('INVALID_REQUEST').waitFor();
  await dialog.getByLabel(/^Public key/).fill(publicKey);
  await dialog.getByLabel(/^The previous key/).selectOption('3600');
  await dialog.getByRole('button', { name: 'Replace' }).click();
  await panel.getByText(publicKey).waitFor();
  const [entry] = (await service.admin.get('/api/v1/audit?event_type=agent.rotate&limit=1')).body.data;
  assert.equal(entry.resource, 'agent:made');
  await panel.getByRole('button', { name: 'Deregister' }).click();
  const confirm = page.getByRole('dialog', { name: 'Deregister “made”?' });
  await confirm.getByText('0 active leases').waitFor();
  await confirm.getByText('0 sessions').waitFor();
  assert.equal(await confirm.getByRole('button', { name: 'Deregister' }).isDisabled(), true);
  assert.deepEqual(await violationsOf(page), []);
  await confirm.getByRole('textbox').fill('made');
  await confirm.getByRole('button', { name: 'Deregister' }).click();
  await panel.waitFor({ state: 'detached' });
  assert.equal((await service.admin.get('/api/v1/agents/made')).status, 404);
  await isReported();
});

test('a panic about one agent names what it ends, and then lists what to rotate', async (t) => {
  await service.admin.post('/api/v1/credentials', { path: 'prod/db', value: 'a first value' });
  const agent = await service.agent('reader', { 'prod/*': ['retrieve'] });
  await agent.get('/api/v1/credentials/prod/db');
  await agent.get('/api/v1/credentials/prod/db');
  const opened = await browser.open(t, at('?agent=reader'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const panel = page.getByRole('complementary', { name: 'reader' });
  await panel.getByRole('region', { name: 'Leases' }).getByText('2 in all').waitFor();
  await panel.getByText('seen: rotate').waitFor();
  await panel.getByText(/seen 2 times, last/).waitFor();
  await panel.getByText(/Its last login was/).waitFor();
  await panel.getByText('1 active session.').waitFor();
  assert.equal(
    await panel.getByRole('link', { name: 'Grant access' }).getAttribute('href'),
    '/console/access?view=simulator&for=reader',
  );
  assert.deepEqual(await violationsOf(page), []);
  await panel.getByRole('button', { name: 'Panic' }).click();
  const dialog = page.getByRole('dialog', { name: 'End everything that “reader” holds?' });
  await dialog.getByText('2 active leases').waitFor();
  await dialog.getByText('1 session', { exact: true }).waitFor();
  await dialog.getByText('0 requests in flight', { exact: true }).waitFor();
  await dialog.getByText('1 credential', { exact: true }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await dialog.getByRole('textbox').fill('reader');
  await dialog.getByRole('button', { name: 'Panic' }).click();
  const result = page.getByRole('region', { name: 'Result of the panic' });
  await result.getByText(/^2 leases revoked, 1 session ended, 0 requests aborted\. 1 current value was seen/).waitFor();
  await untilTrue(page, `document.activeElement.textContent === 'Everything that “reader” held has ended'`);
  assert.match((await result.getByRole('link', { name: 'prod/db' }).getAttribute('href')) ?? '', /path=prod%2Fdb$/);
  assert.deepEqual(await violationsOf(page), []);
  assert.equal((await agent.get('/api/v1/credentials/prod/db')).status, 401);
});

test('open details of an agent show its access and what ends', async (t) => {
  await service.admin.post('/api/v1/credentials', { path: 'watched/key', value: 'a value' });
  const agent = await service.agent('watched', { 'watched/*': ['retrieve'] });
  const opened = await browser.open(t, at('?agent=watched'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const panel = page.getByRole('complementary', { name: 'watched' });
  await panel.getByText('No leases.').waitFor();
  const { body } = await agent.get('/api/v1/credentials/watched/key');
  const leases = panel.getByRole('list', { name: 'Leases' });
  await leases.getByText('active').waitFor();
  await panel.getByText(/seen 1 time, last/).waitFor();
  await panel.getByLabel('Include ended leases').check();
  await leases.getByText('active').waitFor();
  await service.admin.delete(`/api/v1/leases/${body.data.lease_id}`);
  await leases.getByText('revoked').waitFor();
  await panel.getByLabel('Include ended leases').uncheck();
  await panel.getByText('No leases.').waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('a search that finds more names than it returns says so', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const results = Array.from({ length: 50 }, (_, index) => ({
    kind: index < 3 ? 'agent' : 'credential',
    name: `found-${index}`,
    description: '',
  }));
  await page.route('**/api/v1/search?**', (route) => route.fulfill({ json: { data: { complete: true, results } } }));
  const field = page.getByRole('textbox', { name: 'Find' });
  assert.equal(await field.evaluate((input: { placeholder: string }) => input.placeholder), 'part of a name');
  await field.fill('found');
  await page.keyboard.press('Enter');
  await page.getByText('3 agents of the first 50 names found; type more of the name').waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('a panic about everything ends what agents hold, and what a role may not do is not offered', async (t) => {
  const agent = await service.agent('other', { 'prod/*': ['retrieve'] });
  await agent.get('/api/v1/credentials/prod/db');
  const admin = await addOperator(service, 'boss', ['admin']);
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, admin.token);
  await page.getByRole('button', { name: 'Panic: end everything' }).click();
  const dialog = page.getByRole('dialog', { name: 'End everything that agents hold?' });
  await dialog.getByText('1 active lease', { exact: true }).waitFor();
  await dialog.getByText(/^[1-9]\d* sessions?$/).waitFor();
  await dialog.getByText(/Operators stay signed in/).waitFor();
  await dialog.getByRole('textbox').fill('everything');
  await dialog.getByRole('button', { name: 'Panic' }).click();
  await page.getByRole('region', { name: 'Result of the panic' }).getByText('prod/db').waitFor();
  assert.equal((await agent.get('/api/v1/credentials/prod/db')).status, 401);
  await page.getByRole('button', { name: 'Sign out' }).click();
  const viewer = await addOperator(service, 'eve', ['viewer']);
  await signIn(opened, viewer.token);
  await page.getByRole('grid').getByText('other').click();
  const panel = page.getByRole('complementary', { name: 'other' });
  await panel.getByText(/requires the editor role/).waitFor();
  for (const name of ['Register an agent', 'Panic: end everything', 'Panic', 'Deregister', 'Replace the key']) {
    assert.equal(await page.getByRole('button', { name, exact: true }).isDisabled(), true, name);
  }
  await page.getByRole('textbox', { name: 'Find' }).fill('oth');
  await page.keyboard.press('Enter');
  await page.getByText('1 agent', { exact: true }).waitFor();
});
