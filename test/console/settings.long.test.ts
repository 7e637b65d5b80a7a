// The settings in a real browser: operators, passkeys with a virtual authenticator, keys, backups, and nodes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { signIn, startBrowser } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { toLocalhost } from '../kit/sign-in.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const browser = await startBrowser({ after });
const at = (path: string): string => `${toLocalhost(service.address)}/console${path}`;

/**
 * A platform authenticator of the browser, which verifies its user. WHY not earlier: `violationsOf` ends a session with
 * the browser, and with it the authenticator.
 */
async function addAuthenticator(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('WebAuthn.enable');
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

test('the first operator is added with an invitation, enrols a passkey, and signs in with it', async (t) => {
  const opened = await browser.open(t, at('/settings'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'No operator exists yet' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('button', { name: 'Add an operator' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('ana');
  await dialog.getByLabel(/^admin/).check();
  assert.deepEqual(await violationsOf(page), []);
  await dialog.getByRole('button', { name: 'Add' }).click();
  const invitation = page.getByRole('region', { name: 'Invitation of ana' });
  const link = await invitation.locator('code').innerText();
  assert.match(link, /^http:\/\/localhost:\d+\/console\/enrol#./);
  assert.equal((await page.content()).includes(link), true);
  await invitation.getByRole('button', { name: 'Hide the link' }).click();
  await page.getByRole('grid').getByText('viewer, admin').waitFor();
  assert.equal((await page.content()).includes(link.split('#')[1] ?? ''), false);
  await page.getByRole('link', { name: 'My sign-in' }).click();
  await page.getByRole('heading', { name: 'You use the administrator’s token' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();

  await page.goto(link);
  await page.getByLabel('Name of this passkey').fill('Laptop');
  await page.waitForURL(({ hash }) => hash === '');
  assert.deepEqual(await violationsOf(page), []);
  await addAuthenticator(page);
  await page.getByRole('button', { name: 'Register' }).click();
  await page.getByText('The passkey is registered.').waitFor();
  await page.getByRole('link', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.getByRole('banner').getByText('ana', { exact: true }).waitFor();

  await page.goto(at('/settings?section=sign-in'));
  await page.getByText('Laptop').waitFor();
  await page.getByText(/Ends at the latest/).waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('an operator adds a passkey, signs out, signs in with it, and removes it', async (t) => {
  const bea = await addOperator(service, 'bea', ['viewer']);
  const opened = await browser.open(t, at('/settings?section=sign-in'), { colorScheme: 'dark' });
  const { page } = opened;
  await addAuthenticator(page);
  await signIn(opened, bea.token);
  const passkeys = page.getByRole('region', { name: 'Passkeys' });
  await passkeys.getByText('None.').waitFor();
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByLabel('Name of this passkey').fill('<b>Phone</b>');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await passkeys.getByText('<b>Phone</b>').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await passkeys.getByText('<b>Phone</b>').waitFor();
  const [entry] = (await service.admin.get('/api/v1/audit?event_type=auth.verify&limit=1')).body.data;
  assert.deepEqual([entry.agent_name, entry.result], ['operator:bea', 'allowed']);
  // The browser reports the status of the ended session and of the removed passkey.
  const isReported = opened.expectReport(/^console: .* 401 /);
  await passkeys.getByRole('button', { name: 'Remove the passkey <b>Phone</b>' }).click();
  await page.getByRole('dialog').getByText('All sessions and leases of bea end immediately.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByText('Your session has ended.').waitFor();
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.getByRole('alert').waitFor();
  await isReported();
});

test('the last admin is explained; roles change, and an operator is removed', async (t) => {
  await addOperator(service, 'cleo', ['viewer']);
  const opened = await browser.open(t, at('/settings?operator=ana'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const ana = page.getByRole('complementary', { name: 'ana' });
  await ana.getByText(/^ana is the only operator with the role admin/).waitFor();
  assert.equal(await ana.getByRole('button', { name: 'Remove', exact: true }).isDisabled(), true);
  await page.getByRole('grid').getByText('cleo').click();
  const cleo = page.getByRole('complementary', { name: 'cleo' });
  await cleo.getByRole('button', { name: 'Change roles' }).click();
  await page
    .getByRole('dialog')
    .getByLabel(/^approver/)
    .check();
  await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
  await cleo.getByText('viewer, approver').waitFor();
  await cleo.getByRole('button', { name: 'Invite again' }).click();
  await page.getByRole('region', { name: 'Invitation of cleo' }).getByRole('button', { name: 'Hide the link' }).click();
  await cleo.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('cleo');
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await cleo.waitFor({ state: 'detached' });
  assert.equal((await service.admin.get('/api/v1/operators/cleo')).status, 404);
});

test('slots are tested, keys are replaced, a backup is saved, and the node is shown', async (t) => {
  const opened = await browser.open(t, at('/settings?section=keys'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('button', { name: 'Test the slot file' }).click();
  await page.getByText('opens the vault', { exact: true }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Remove the slot file' }).isDisabled(), true);
  await page.getByText('The last slot cannot be removed.').waitFor();
  await page.getByRole('button', { name: 'Replace the data key' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replace' }).click();
  await page.getByText(/^(Every value is encrypted|Earlier values are being re-encrypted)/).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('link', { name: 'Backups' }).click();
  await page.getByText(/No backup exists yet/).waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download a backup' }).click(),
  ]);
  const records = readFileSync(await download.path(), 'utf8')
    .trim()
    .split('\n');
  assert.match(records.at(-1) ?? '', /"end"/);
  await page.getByText('complete', { exact: true }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('link', { name: 'Nodes and version' }).click();
  await page.getByText('responds to you').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});

test('the evidence of the audit log shows the newest checkpoint', async (t) => {
  const opened = await browser.open(t, at('/settings?section=about'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const evidence = page.getByRole('region', { name: 'Evidence of the audit log' });
  const { size } = (await service.admin.get('/api/v1/audit/checkpoint')).body.data;
  await evidence.getByText(size.toLocaleString('en'), { exact: true }).waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(await violationsOf(page), []);
});
