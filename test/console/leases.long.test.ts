// The view of leases, its filters in the URL, and a revocation that names the lease that it ends.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
const at = (path: string): string => `${service.address}/console/${path}`;
const HOLDERS = 12;

test('without a lease the view says what a lease is', async (t) => {
  const opened = await browser.open(t, at('agents?view=leases'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'No leases yet' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('Now leads to every active lease, which filters find and an editor revokes', async (t) => {
  await admin.post('/api/v1/credentials', { path: 'prod/db', value: 'a value' });
  for (let index = 0; index < HOLDERS; index++) {
    const agent = await service.agent(`holder-${index}`, { 'prod/*': ['retrieve'] });
    assert.equal((await agent.get('/api/v1/credentials/prod/db')).status, 200);
  }
  const opened = await browser.open(t, at('now'));
  const { page } = opened;
  await signIn(opened, (await addOperator(service, 'eda', ['editor'])).token);
  await page.getByRole('link', { name: 'All active leases' }).click();
  await page.getByText(`${HOLDERS} active leases`, { exact: true }).waitFor();
  assert.match(page.url(), /\/agents\?view=leases&status=active$/);
  const grid = page.getByRole('grid', { name: 'Leases, newest first' });
  await grid.getByText('holder-0', { exact: true }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('textbox', { name: 'Agent' }).fill('holder-3');
  await page.keyboard.press('Enter');
  await page.getByText('1 active lease', { exact: true }).waitFor();
  assert.match(page.url(), /agent=holder-3/);
  await grid.getByText('holder-3', { exact: true }).click();
  const panel = page.getByRole('complementary', { name: 'Lease of holder-3' });
  await panel.getByRole('button', { name: 'Revoke' }).click();
  const dialog = page.getByRole('dialog', { name: 'Revoke the lease?' });
  await dialog.getByText('This ends the lease of holder-3 for version 1 of prod/db').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await dialog.getByRole('button', { name: 'Revoke the lease' }).click();
  await panel.getByText('The lease has already ended.').waitFor();
  await page.getByRole('heading', { name: 'No matching leases' }).waitFor();
  assert.equal((await admin.get('/api/v1/leases?agent=holder-3&status=active&limit=1')).body.meta.total, 0);
  await panel.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('combobox', { name: 'Status' }).selectOption('');
  await grid.getByText('revoked', { exact: true }).waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(await violationsOf(page), []);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('button', { name: 'Agents', exact: true }).click();
  await page.getByText(`${HOLDERS} agents`, { exact: true }).waitFor();
  assert.match(page.url(), /\/agents$/);
});

test('a link shows the same leases, which change while they are shown; a viewer is not offered a revocation', async (t) => {
  const agent = await service.agent('late', { 'prod/*': ['retrieve'] });
  const opened = await browser.open(t, at('agents?view=leases&agent=late&path=prod%2Fdb&status=active'), {
    colorScheme: 'dark',
  });
  const { page } = opened;
  await signIn(opened, (await addOperator(service, 'vic', ['viewer'])).token);
  await page.getByRole('heading', { name: 'No matching leases' }).waitFor();
  const { body } = await agent.get('/api/v1/credentials/prod/db');
  await page.getByRole('grid').getByText('late', { exact: true }).click();
  const panel = page.getByRole('complementary', { name: 'Lease of late' });
  await panel.getByText(/requires the editor role/).waitFor();
  assert.equal(await panel.getByRole('button', { name: 'Revoke' }).isDisabled(), true);
  assert.deepEqual(await violationsOf(page), []);
  await admin.delete(`/api/v1/leases/${body.data.lease_id}`);
  await page.getByRole('heading', { name: 'No matching leases' }).waitFor();
});
