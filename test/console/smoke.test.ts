// The console in a real browser: a newcomer with the administrator's token and the keyboard alone, an approval, and axe
// on every page. The `.long` files go through each page.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { createClient, logIn } from '../kit/client.ts';
import { newOperatorKey } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { settle, violationsOf } from './accessibility.ts';
import { answer, card, setUpApprovals } from './approval-requests.ts';

const VALUE = 'sk-tour-5f2b1c9e77d04a';
const MAX_STOPS = 120;
const HOSTILE = '</textarea><img src=x onerror=alert(1)>\u202egnp.exe';

const service = await startTestService({ after }, [], undefined, undefined, { approvalHoldMs: 50 });
const browser = await startBrowser({ after });
const at = (path: string): string => `${service.address}/console${path}`;

/** The role and the accessible name of what has the focus, as a screen reader says them. */
const FOCUSED = `(() => {
  const element = document.activeElement;
  const named = element.getAttribute('aria-labelledby')?.split(' ').map((id) => document.getElementById(id)?.textContent).join(' ');
  const label = element.getAttribute('aria-label') ?? named ?? element.labels?.[0]?.textContent ?? element.textContent;
  return label.trim();
})()`;

/** Presses Tab until what has the name has the focus. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  // Tab does not reach a button that is disabled while the page reads what it depends on.
  await page.locator('button:disabled').filter({ hasText: name }).first().waitFor({ state: 'detached' });
  const seen: string[] = [];
  for (let stops = 0; stops < MAX_STOPS; stops++) {
    const focused = await page.evaluate<string>(FOCUSED);
    if (name.test(focused)) return;
    seen.push(focused);
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab reaches nothing with the name ${name}: ${[...new Set(seen)].join(' | ')}`);
}

async function press(page: Page, name: RegExp): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.press('Enter');
}

async function type(page: Page, name: RegExp, text: string): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
}

/** Goes to the page by the search, which every page has. */
async function go(page: Page, title: string): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Search pages/ }).waitFor();
  await page.keyboard.type(title);
  await page
    .getByRole('option', { name: new RegExp(`^${title}`) })
    .first()
    .waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: title, level: 1 }).waitFor();
}

test('a newcomer stores, registers, grants, sees a use and finds why another was denied', async (t) => {
  const { page } = await browser.open(t, `${service.address}/`);
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
  await type(page, /^Token/, service.adminToken);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();

  const steps = page.getByRole('region', { name: 'First steps' });
  await steps.waitFor();
  await press(page, /^Open Credentials$/);
  await page.getByRole('heading', { name: 'Credentials', level: 1 }).waitFor();
  await press(page, /^Store a credential/);
  await page.getByRole('dialog', { name: 'Store a credential' }).waitFor();
  await type(page, /^Path/, 'prod/db/password');
  await type(page, /^Value/, VALUE);
  await page.getByRole('dialog').getByText('A new credential will be created at this path.').waitFor();
  await press(page, /^Store the credential$/);
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal((await service.admin.get('/api/v1/credentials?limit=1')).body.data[0].path, 'prod/db/password');
  assert.equal((await page.content()).includes(VALUE), false);

  await go(page, 'Agents');
  await press(page, /^Register an agent/);
  await page.getByRole('dialog').waitFor();
  const key = newOperatorKey();
  await type(page, /^Name/, 'deploy-bot');
  await type(page, /^Public key/, key.publicKey);
  await press(page, /^Register$/);
  await page.getByRole('complementary', { name: 'deploy-bot' }).waitFor();
  const agent = createClient(service.address, await logIn(service.address, 'deploy-bot', key.privateKey));
  assert.equal((await agent.get('/api/v1/credentials/prod/db/password')).status, 403);

  // The denial is on the first page, with its reason and a link to the simulator, which proposes a fix.
  await go(page, 'Now');
  const denial = page.getByRole('region', { name: 'Denials' }).getByRole('listitem').first();
  await denial.waitFor();
  assert.match(await denial.innerText(), /deploy-bot was denied retrieve of prod\/db\/password[\s\S]*no policy/);
  await press(page, /^Explain why deploy-bot was denied prod\/db\/password$/);
  await page.getByRole('region', { name: 'Decision' }).getByText('denied').waitFor();
  await page.getByRole('region', { name: 'How to allow it' }).waitFor();
  await press(page, /^Apply this change$/);
  await page.getByRole('region', { name: 'Decision' }).getByText('allowed').waitFor();
  const { status, body } = await agent.get('/api/v1/credentials/prod/db/password');
  assert.deepEqual([status, body.data.value], [200, VALUE]);

  await go(page, 'Now');
  await steps.waitFor({ state: 'detached' });
  const used = page.getByRole('region', { name: 'Brokered requests and retrievals' }).getByRole('listitem');
  await used.filter({ hasText: 'deploy-bot retrieved prod/db/password' }).waitFor();
  await page.getByRole('heading', { name: 'Active leases (1)' }).waitFor();
  await go(page, 'Audit log');
  await page.getByRole('grid').getByText('credential.retrieve').first().waitFor();
  await tabTo(page, /^Audit entries/);
  await page.keyboard.press('Enter');
  await page.getByRole('complementary').getByText('prod/db/password').waitFor();
  assert.equal((await page.content()).includes(VALUE), false);
});

test('a request appears without a reload, with its scope and its exact body, and passes when it is approved', async (t) => {
  const { alice, agentWith, call, origin } = await setUpApprovals({ after }, service);
  const agent = await agentWith('payer', { for: 'use', each: 'endpoint', scope: '5 uses' });
  const opened = await browser.open(t, at('/approvals'));
  const { page } = opened;
  await signIn(opened, alice.token);
  await call(agent, '/v1/charges?dry=1', '{"amount":1,"amount":99999999999999999999}', HOSTILE);
  const shown = card(opened, /^POST .*\/v1\/charges$/);
  await shown.waitFor();
  await shown.getByText(/^An approval allows: .*5 times|^An approval allows: .*5 uses/).waitFor();
  await shown.getByText(`POST ${origin}/v1/charges?dry=1`).waitFor();
  // Repeated names and large numbers are shown as they are sent.
  assert.equal(
    await shown.getByLabel('Body of the request').inputValue(),
    '{\n  "amount": 1,\n  "amount": 99999999999999999999\n}',
  );
  await shown.getByText('</textarea><img src=x onerror=alert(1)>\\u{202e}gnp.exe').waitFor();
  assert.equal(await page.locator('img').count(), 0);
  await shown.getByText('payer', { exact: true }).waitFor();
  await shown.getByText('0 of 1').waitFor();
  await shown.getByText(/^4:\d\d left$/).waitFor();
  await page.getByRole('link', { name: 'Approvals 1 pending' }).waitFor();
  await untilTrue(page, `document.title === '(1) Approvals · Leasehold'`);
  assert.deepEqual(await violationsOf(page), []);
  await answer(opened, shown.getByRole('button', { name: 'Approve' }));
  await page.getByRole('heading', { name: 'No pending approvals' }).waitFor();
  assert.equal((await call(agent, '/v1/charges?dry=2', '{}')).status, 200);
  await page.getByRole('link', { name: 'Active grants' }).click();
  const grant = page.getByRole('list', { name: 'Active grants' }).getByRole('listitem');
  await grant.getByText(/payer · 4 uses left/).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await grant.getByRole('button', { name: 'End' }).click();
  await page.getByRole('button', { name: 'End it' }).click();
  await page.getByRole('heading', { name: 'No active grants' }).waitFor();
  assert.equal((await call(agent, '/v1/charges?dry=3', '{}')).body.error.code, 'APPROVAL_WITHDRAWN');
});

test('every page is accessible', async (t) => {
  const opened = await browser.open(t, at('/log'));
  const { page } = opened;
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
  assert.deepEqual(await violationsOf(page), [], 'sign-in');
  await signIn(opened, service.adminToken);
  for (const name of ['Now', 'Approvals', 'Access', 'Credentials', 'Agents', 'Audit log', 'Settings']) {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    await settle(page);
    assert.deepEqual(await violationsOf(page), [], name);
  }
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Search pages/ }).waitFor();
  assert.deepEqual(await violationsOf(page), [], 'palette');
});
