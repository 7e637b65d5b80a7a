// The policies of the page Access in a real browser: the editor, the filter, and the errors of a rejected change.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/access?view=policies${query}`;

async function put(name: string, principal: string, resource: string): Promise<void> {
  const policy = { name, principal, resources: [resource], actions: ['retrieve'] };
  assert.equal((await admin.post('/api/v1/policies', policy)).status, 201);
}

test('policies are created, edited with what widens marked, and deleted by the keyboard', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('button', { name: 'New policy' }).focus();
  await page.keyboard.press('Enter');
  const editor = page.getByRole('dialog', { name: 'New policy' });
  // Nothing was typed yet, so nothing is wrong.
  await editor.getByLabel('Resources').waitFor();
  assert.equal(await editor.locator('.field-problem').count(), 0);
  assert.deepEqual(await violationsOf(page), []);
  await editor.getByLabel('Principal').focus();
  await editor.getByLabel('Longest lease').focus();
  await editor.getByText(/^principal: must/).waitFor();
  assert.equal(await editor.getByText(/^resources: must/).count(), 0);
  await editor.getByRole('button', { name: 'Create the policy' }).click();
  await editor.getByText(/^resources: must/).waitFor();
  await untilTrue(page, `document.activeElement.labels[0].textContent === 'Name'`);
  assert.deepEqual(await violationsOf(page), []);
  await editor.getByLabel('Name').fill('qa-reads');
  await editor.getByLabel('Principal').fill('agent:qa-*');
  await editor.getByLabel('Resources').fill('qa/*\nqa//x');
  await editor.getByText(/^line 2: /).waitFor();
  await editor.getByLabel('Resources').fill('qa/*');
  await editor.getByText('Every agent whose name begins with qa- may retrieve everything below qa').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await editor.getByLabel('Name').focus();
  await page.keyboard.press('Enter');
  const panel = page.getByRole('complementary', { name: 'qa-reads' });
  await panel.getByRole('button', { name: 'Edit' }).click();
  const edited = page.getByRole('dialog', { name: 'Edit the policy qa-reads' });
  await edited.getByText('Nothing changes.').waitFor();
  await edited.getByRole('checkbox', { name: 'store' }).check();
  await edited.getByLabel('Longest lease').fill('60');
  const difference = await edited.getByRole('table').innerText();
  assert.match(difference, /actions\s*wider[\s\S]*\+ store/);
  assert.match(difference, /longest lease, in seconds\s*− 300\s*\+ 60/);
  await edited.getByRole('button', { name: 'Save the policy' }).click();
  await panel.getByText('retrieve, store').waitFor();
  await panel.getByRole('button', { name: 'Delete' }).click();
  const confirm = page.getByRole('dialog', { name: 'Delete the policy qa-reads?' });
  assert.equal(await confirm.getByRole('button', { name: 'Delete the policy' }).isDisabled(), true);
  await confirm.getByRole('textbox').fill('qa-reads');
  await page.keyboard.press('Enter');
  await panel.waitFor({ state: 'detached' });
  assert.equal((await admin.get('/api/v1/policies/qa-reads')).status, 404);
  assert.deepEqual(await violationsOf(page), []);
});

test('policies are found by a part of the name, the principal or a resource, and are counted', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await put('night-jobs', 'agent:backup-bot', 'prod/db/*');
  await signIn(opened, service.adminToken);
  await page.getByText('1 policy', { exact: true }).waitFor();
  await put('day-jobs', 'agent:report-bot', 'prod/mail');
  await put('tests', 'agent:ci-*', 'staging/*');
  await page.reload();
  await page.getByText('3 policies', { exact: true }).waitFor();
  const grid = page.getByRole('grid', { name: 'Policies by name' });
  const find = page.getByRole('textbox', { name: 'Find' });
  for (const [text, found] of [
    ['NIGHT', ['night-jobs']],
    ['report-bot', ['day-jobs']],
    ['staging', ['tests']],
    ['jobs', ['day-jobs', 'night-jobs']],
  ] as const) {
    await find.fill(text);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**q=${text}`);
    await page.getByText(found.length === 1 ? '1 policy' : `${found.length} policies`, { exact: true }).waitFor();
    for (const name of found) await grid.getByText(name, { exact: true }).waitFor();
    assert.equal(await grid.getByRole('row').count(), found.length + 1);
  }
  assert.deepEqual(await violationsOf(page), []);
  await find.fill('absent');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: /^No matching policies/ }).waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(await violationsOf(page), []);
});

test('a rejected change says what to do: a name that is taken, and paths that an editor may not change', async (t) => {
  const editor = await addOperator(service, 'edith', ['editor']);
  const bound = { name: 'edith-edits', principal: 'operator:edith', resources: ['staging/*'], actions: ['store'] };
  assert.equal((await admin.post('/api/v1/policies', bound)).status, 201);
  await put('taken', 'agent:one', 'staging/*');
  const opened = await browser.open(t, at(''), { colorScheme: 'dark' });
  const { page } = opened;
  const [isTaken, isForbidden] = [opened.expectReport(/ 409 /), opened.expectReport(/ 403 /)];
  await signIn(opened, service.adminToken);
  await page.getByRole('button', { name: 'New policy' }).click();
  const dialog = page.getByRole('dialog', { name: 'New policy' });
  await dialog.getByLabel('Name').fill('taken');
  await dialog.getByLabel('Principal').fill('agent:two');
  await dialog.getByLabel('Resources').fill('staging/*');
  await dialog.getByRole('button', { name: 'Create the policy' }).click();
  const alert = dialog.getByRole('alert');
  await alert.getByText('ALREADY_EXISTS').waitFor();
  await alert.getByText(/^Choose another name/).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await signIn(opened, editor.token);
  await page.getByRole('button', { name: 'New policy' }).click();
  await dialog.getByLabel('Name').fill('elsewhere');
  await dialog.getByLabel('Principal').fill('agent:two');
  await dialog.getByLabel('Resources').fill('prod/*');
  await dialog.getByRole('button', { name: 'Create the policy' }).click();
  await alert.getByText('ACCESS_DENIED').waitFor();
  await alert.getByText(/Your roles or your policies do not allow this/).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await isTaken();
  await isForbidden();
});
