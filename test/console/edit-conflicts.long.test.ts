// Two operators edit or delete the same resource: the second learns of it, and overwrites nothing.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { signIn, startBrowser } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
const ana = await addOperator(service, 'ana', ['admin']);
const ben = await addOperator(service, 'ben', ['admin']);

/** A page of ben. The browser reports each response that is not a success. */
async function openPage(t: Parameters<typeof browser.open>[0], address: string): Promise<Page> {
  const opened = await browser.open(t, `${service.address}/console${address}`);
  opened.expectReport(/ 4(?:12|04) /);
  await signIn(opened, ben.token);
  return opened.page;
}

const noticeIn = (scope: Page | Locator): Locator => scope.getByRole('alert', { name: 'Changed in the meantime' });

async function present(path: string) {
  const { status, body } = await admin.get(path);
  return status === 200 ? body.data : null;
}

const POLICY = { principal: 'agent:ci', resources: ['ci/*', 'db/*'], actions: ['retrieve', 'list'], max_ttl: 300 };

test('policy: the change of another operator is reported and never overwritten', async (t) => {
  const path = '/api/v1/policies/shared';
  await admin.put(path, POLICY);
  const page = await openPage(t, '/access?view=policies&policy=shared');
  await page.getByRole('complementary', { name: 'shared' }).getByRole('button', { name: 'Edit' }).click();
  const editor = page.getByRole('dialog', { name: 'Edit the policy shared' });
  await editor.getByLabel('Longest lease').fill('60');
  await editor.getByLabel('Resources').fill('ci/*\ndb/*\nmail/*');
  // The same policy is narrowed.
  assert.equal((await ana.put(path, { ...POLICY, actions: ['list'], resources: ['ci/*'] })).status, 200);
  await editor.getByRole('button', { name: 'Save the policy' }).click();
  const notice = noticeIn(editor);
  await notice.getByText('The policy shared was changed since you opened it. Nothing was saved.').waitFor();
  await notice.getByText(/^operator:ana changed it at/).waitFor();
  assert.equal(await editor.getByRole('button', { name: 'Save the policy' }).isDisabled(), true);
  assert.deepEqual(await violationsOf(page), []);
  assert.deepEqual((await present(path)).actions, ['list']);

  await notice.getByRole('button', { name: 'Reload' }).click();
  await editor.getByText('Nothing changes.').waitFor();
  assert.equal(await editor.getByRole('checkbox', { name: 'retrieve' }).isChecked(), false);
  assert.equal(await editor.getByLabel('Resources').inputValue(), 'ci/*');
  await editor.getByLabel('Longest lease').fill('60');
  await editor.getByRole('button', { name: 'Save the policy' }).click();
  await editor.waitFor({ state: 'detached' });
  const { resources, actions, max_ttl } = await present(path);
  assert.deepEqual([resources, actions, max_ttl], [['ci/*'], ['list'], 60]);
});

test('policy: edited fields are kept on request, and saved on top of the change that was shown', async (t) => {
  const path = '/api/v1/policies/kept';
  await admin.put(path, POLICY);
  const page = await openPage(t, '/access?view=policies&policy=kept');
  await page.getByRole('complementary', { name: 'kept' }).getByRole('button', { name: 'Edit' }).click();
  const editor = page.getByRole('dialog', { name: 'Edit the policy kept' });
  await editor.getByLabel('Longest lease').fill('60');
  const save = editor.getByRole('button', { name: 'Save the policy' });
  assert.equal((await ana.put(path, { ...POLICY, actions: ['list'] })).status, 200);
  await save.click();
  await noticeIn(editor).getByRole('button', { name: 'Keep mine' }).click();
  // The difference is that from the present state, and a second change is a conflict again.
  await editor.getByText('+ retrieve').waitFor();
  assert.equal((await ana.put(path, { ...POLICY, actions: ['use'] })).status, 200);
  await save.click();
  await noticeIn(editor).getByRole('button', { name: 'Keep mine' }).click();
  assert.deepEqual((await present(path)).actions, ['use']);
  await save.click();
  await editor.waitFor({ state: 'detached' });
  const { actions, max_ttl } = await present(path);
  assert.deepEqual([actions, max_ttl], [POLICY.actions, 60]);

  await page.getByRole('complementary', { name: 'kept' }).getByRole('button', { name: 'Edit' }).click();
  await editor.getByLabel('Longest lease').fill('90');
  assert.equal((await ana.delete(path)).status, 204);
  await save.click();
  await noticeIn(editor).getByRole('button', { name: 'Keep mine' }).click();
  await page.getByRole('button', { name: 'Create the policy' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal((await present(path)).max_ttl, 90);
});

test('policy: one that was deleted is not created again by saving an edit, nor deleted in another state', async (t) => {
  const path = '/api/v1/policies/gone';
  await admin.put(path, POLICY);
  const page = await openPage(t, '/access?view=policies&policy=gone');
  const panel = page.getByRole('complementary', { name: 'gone' });
  await panel.getByRole('button', { name: 'Delete' }).click();
  assert.equal((await ana.put(path, { ...POLICY, resources: ['only/*'] })).status, 200);
  const confirm = page.getByRole('dialog', { name: 'Delete the policy gone?' });
  await confirm.getByRole('textbox').fill('gone');
  await page.keyboard.press('Enter');
  await confirm.getByRole('alert').getByText('PRECONDITION_FAILED').waitFor();
  await confirm.getByText(/only/).first().waitFor();
  assert.notEqual(await present(path), null);
  await page.keyboard.press('Escape');

  await panel.getByRole('button', { name: 'Edit' }).click();
  const editor = page.getByRole('dialog', { name: 'Edit the policy gone' });
  await editor.getByRole('checkbox', { name: 'use' }).check();
  assert.equal((await ana.delete(path)).status, 204);
  await editor.getByRole('button', { name: 'Save the policy' }).click();
  const notice = noticeIn(editor);
  await notice.getByText('The policy gone was deleted since you opened it. Nothing was saved.').waitFor();
  await notice.getByText(/^operator:ana deleted it at/).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  assert.equal(await present(path), null);
  await notice.getByRole('button', { name: 'Reload' }).click();
  await editor.waitFor({ state: 'detached' });
});

test('targets: the change of another operator is reported, even where there were none', async (t) => {
  const path = '/api/v1/targets/shared/key';
  const targets = (...hosts: string[]) => ({
    targets: hosts.map((host) => ({ origin: `https://${host}.example` })),
    placement: { kind: 'bearer' },
  });
  await admin.post('/api/v1/credentials', { path: 'shared/key', value: 'v' });
  const page = await openPage(t, '/credentials?path=shared/key');
  const panel = page.getByRole('complementary', { name: 'shared/key' });
  await panel.getByRole('button', { name: 'Set targets…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Targets of shared/key' });
  await dialog.getByRole('textbox', { name: 'Origin' }).fill('https://mine.example');
  assert.equal((await ana.put(path, targets('one', 'two'))).status, 200);
  await dialog.getByRole('button', { name: 'Save the targets' }).click();
  const notice = noticeIn(dialog);
  await notice.getByText(/^operator:ana changed it at/).waitFor();
  await notice.getByRole('button', { name: 'Reload' }).click();
  await dialog.getByRole('group', { name: 'Target 2' }).waitFor();
  await dialog.getByRole('group', { name: 'Target 1' }).getByRole('textbox', { name: 'Methods' }).fill('GET');
  // A host is removed.
  assert.equal((await ana.put(path, targets('one'))).status, 200);
  await dialog.getByRole('button', { name: 'Save the targets' }).click();
  await notice.getByText(/^operator:ana changed it at/).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await notice.getByRole('button', { name: 'Reload' }).click();
  await notice.waitFor({ state: 'detached' });
  assert.equal(await dialog.getByRole('group').count(), 1);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await panel.getByRole('button', { name: 'Edit targets…' }).click();
  await dialog.getByRole('textbox', { name: 'Origin' }).fill('https://again.example');
  assert.equal((await ana.delete(path)).status, 204);
  await dialog.getByRole('button', { name: 'Save the targets' }).click();
  await notice.getByText(/^operator:ana deleted it at/).waitFor();
  assert.equal(await present(path), null);
});

test('targets: targets that another operator changed or set are neither deleted nor replaced', async (t) => {
  const path = '/api/v1/targets/kept/key';
  const targets = (host: string) => ({
    targets: [{ origin: `https://${host}.example` }],
    placement: { kind: 'bearer' },
  });
  const originsAt = async (address: string) =>
    (await present(address)).targets.map(({ origin }: { origin: string }) => origin);
  await admin.post('/api/v1/credentials', { path: 'kept/key', value: 'v' });
  await admin.put(path, targets('one'));
  const page = await openPage(t, '/credentials?path=kept/key');
  await page.getByRole('complementary', { name: 'kept/key' }).getByRole('button', { name: 'Delete targets…' }).click();
  const confirm = page.getByRole('dialog', { name: 'Delete the targets?' });
  assert.equal((await ana.put(path, targets('two'))).status, 200);
  await confirm.getByRole('button', { name: 'Delete the targets' }).click();
  await confirm.getByRole('alert').getByText('PRECONDITION_FAILED').waitFor();
  assert.deepEqual(await originsAt(path), ['https://two.example']);
  await page.keyboard.press('Escape');

  // Another operator sets the targets of a new credential before its dialog does.
  const made = '/api/v1/targets/made/key';
  await page.route('**/api/v1/targets/made/key', async (route) => {
    if (route.request().method() === 'PUT') await ana.put(made, targets('theirs'));
    await route.continue();
  });
  await page.getByRole('button', { name: 'Store a credential' }).click();
  const dialog = page.getByRole('dialog', { name: 'Store a credential' });
  await dialog.getByLabel('Path').fill('made/key');
  await dialog.getByLabel('Service').selectOption('openai');
  await dialog.getByLabel('Value', { exact: true }).fill('sk-0123456789');
  await dialog.getByRole('button', { name: 'Store' }).click();
  await dialog.getByText('The value was stored, but its targets were not.').waitFor();
  assert.deepEqual(await originsAt(made), ['https://theirs.example']);
});

test('operator: an operator that another operator changed is not removed', async (t) => {
  await addOperator(service, 'joe', ['viewer']);
  const page = await openPage(t, '/settings?section=operators&operator=joe');
  await page.getByRole('complementary', { name: 'joe' }).getByRole('button', { name: 'Remove' }).click();
  const confirm = page.getByRole('dialog', { name: 'Remove “joe”?' });
  const change = { roles: ['viewer'], description: 'kept for the audit' };
  assert.equal((await ana.put('/api/v1/operators/joe', change)).status, 200);
  await confirm.getByRole('textbox').fill('joe');
  await page.keyboard.press('Enter');
  await confirm.getByRole('alert').getByText('PRECONDITION_FAILED').waitFor();
  assert.equal((await present('/api/v1/operators/joe')).description, 'kept for the audit');
});

test('credential: one that received a new version since it was shown is not deleted', async (t) => {
  const store = (value: string) => ana.post('/api/v1/credentials', { path: 'stored/twice', value });
  await store('one');
  const page = await openPage(t, '/credentials?path=stored/twice');
  await page.getByRole('complementary', { name: 'stored/twice' }).getByRole('button', { name: 'Delete…' }).click();
  const confirm = page.getByRole('dialog', { name: 'Delete the credential?' });
  await confirm.getByText(/^This destroys 1 version/).waitFor();
  assert.equal((await store('two')).status, 201);
  await confirm.getByRole('textbox').fill('stored/twice');
  await page.keyboard.press('Enter');
  await confirm.getByRole('alert').getByText('PRECONDITION_FAILED').waitFor();
  await confirm.getByText(/^This destroys 2 versions/).waitFor();
  assert.notEqual(await present('/api/v1/credentials/stored/twice?view=metadata'), null);
});

test('agent: one that was registered again is not deregistered', async (t) => {
  const register = () => ana.post('/api/v1/agents', { name: 'again' });
  await register();
  const page = await openPage(t, '/agents?agent=again');
  await page.getByRole('complementary', { name: 'again' }).getByRole('button', { name: 'Deregister' }).click();
  const confirm = page.getByRole('dialog', { name: 'Deregister “again”?' });
  assert.equal((await ana.delete('/api/v1/agents/again')).status, 204);
  assert.equal((await register()).status, 201);
  await confirm.getByRole('textbox').fill('again');
  await page.keyboard.press('Enter');
  await confirm.getByRole('alert').getByText('PRECONDITION_FAILED').waitFor();
  assert.notEqual(await present('/api/v1/agents/again'), null);
});

test('operator: a role that another operator removed does not come back', async (t) => {
  await addOperator(service, 'eve', ['viewer', 'editor']);
  const path = '/api/v1/operators/eve';
  const page = await openPage(t, '/settings?section=operators&operator=eve');
  await page.getByRole('complementary', { name: 'eve' }).getByRole('button', { name: 'Change roles' }).click();
  const dialog = page.getByRole('dialog', { name: 'Roles of “eve”' });
  await dialog.getByRole('checkbox', { name: /^approver/ }).check();
  assert.equal((await ana.put(path, { roles: ['viewer'], description: 'on leave' })).status, 200);
  await dialog.getByRole('button', { name: 'Change', exact: true }).click();
  const notice = noticeIn(dialog);
  await notice.getByText('The operator eve was changed since you opened it. Nothing was saved.').waitFor();
  await notice.getByText(/^operator:ana changed it at/).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  assert.deepEqual((await present(path)).roles, ['viewer']);
  await notice.getByRole('button', { name: 'Keep mine' }).click();
  assert.equal(await dialog.getByRole('checkbox', { name: /^editor/ }).isChecked(), true);
  assert.equal((await ana.put(path, { roles: ['viewer'], description: 'on leave till May' })).status, 200);
  await dialog.getByRole('button', { name: 'Change', exact: true }).click();
  await notice.getByRole('button', { name: 'Reload' }).click();
  await notice.waitFor({ state: 'detached' });
  assert.equal(await dialog.getByRole('checkbox', { name: /^editor/ }).isChecked(), false);
  await dialog.getByRole('checkbox', { name: /^approver/ }).check();
  await dialog.getByRole('button', { name: 'Change', exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
  const { roles, description } = await present(path);
  assert.deepEqual([roles, description], [['viewer', 'approver'], 'on leave till May']);
});

test('simulator: Apply adds a target only to the targets that were shown', async (t) => {
  const path = '/api/v1/targets/apis/key';
  const targets = (host: string) => ({
    targets: [{ origin: `https://${host}.example` }],
    placement: { kind: 'bearer' },
  });
  await service.agent('caller');
  await admin.post('/api/v1/credentials', { path: 'apis/key', value: 'v' });
  await admin.put(path, targets('one'));
  const policy = { principal: 'agent:caller', resources: ['apis/*'], actions: ['use'] };
  await admin.put('/api/v1/policies/calls', policy);
  const page = await openPage(t, '/access?view=simulator&for=caller&action=use&path=apis/key');
  await page.getByLabel('URL').fill('https://new.example/v1');
  await page.keyboard.press('Enter');
  const fix = page.getByRole('region', { name: 'How to allow it' });
  await fix.getByText('+ https://new.example').waitFor();
  assert.equal((await ana.put(path, targets('two'))).status, 200);
  await fix.getByRole('button', { name: 'Apply this change' }).click();
  await noticeIn(fix)
    .getByText(/^operator:ana changed it at/)
    .waitFor();
  assert.deepEqual(
    (await present(path)).targets.map(({ origin }: { origin: string }) => origin),
    ['https://two.example'],
  );
});
