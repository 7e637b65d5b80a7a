// An approval and a panic by keyboard alone: from the sign-in to the end, the tests send only keys.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { startUpstream } from '../broker/upstream.ts';
import { startBrowser, untilTrue } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets } from '../kit/use.ts';

const MAX_STOPS = 60;

/** A held request waits for as long as a busy machine needs. */
const service = await startTestService({ after }, [], undefined, undefined, { approvalHoldMs: 120_000 });
const upstream = await startUpstream({ after }, (_, response) => response.end('paid'));
const browser = await startBrowser({ after });

/** What has the focus, as a screen reader would name it. */
const FOCUSED = `(() => {
  const { activeElement } = document;
  const label = activeElement?.labels?.[0]?.textContent ?? '';
  return (activeElement?.getAttribute('aria-label') ?? (label || activeElement?.textContent) ?? '').trim();
})()`;

/** Presses Tab until the focus is on what has the name. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  const stops: string[] = [];
  while (stops.length < MAX_STOPS) {
    const focused = await page.evaluate<string>(FOCUSED);
    if (name.test(focused)) return;
    stops.push(focused);
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not reach ${name}: ${stops.join(' | ')}`);
}

async function signInByKeys(page: Page, token: string): Promise<void> {
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
  await tabTo(page, /^Token$/);
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
}

/** Opens a page with the palette. */
async function goTo(page: Page, title: string): Promise<void> {
  await page.keyboard.press('/');
  await page.getByRole('combobox', { name: /^Search pages/ }).waitFor();
  await page.keyboard.type(title);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: title, level: 1 }).waitFor();
}

test('a request is approved', async (t) => {
  const operator = await addOperator(service, 'ana', ['approver']);
  await storeWithTargets(service, 'pay/key', upstream);
  const agent = await service.agent('payer');
  const policy = { principal: 'agent:payer', resources: ['pay/*'], actions: ['use'], approval: { for: 'use' } };
  await service.admin.put('/api/v1/policies/payments', policy);
  const url = `https://127.0.0.1:${upstream.port}/v1/charges`;
  const held = agent.post('/api/v1/use', { path: 'pay/key', method: 'POST', url, body: '{"amount":5}' });
  const { page } = await browser.open(t, `${service.address}/console/`);
  await signInByKeys(page, operator.token);
  await goTo(page, 'Approvals');
  await page.getByLabel('Body of the request').waitFor();
  await tabTo(page, /^POST .*\/v1\/charges$/);
  let isAnswered = false;
  const passed = held.finally(() => {
    isAnswered = true;
  });
  // A key counts once the card has had the focus for half a second.
  while (!isAnswered) {
    await page.keyboard.press('a');
    await Promise.race([passed, sleep(200)]);
  }
  const { status, body } = await passed;
  assert.deepEqual([status, body.data.body], [200, 'paid']);
  await page.getByRole('heading', { name: 'No pending approvals' }).waitFor();
});

test('a panic ends what an agent holds', async (t) => {
  const operator = await addOperator(service, 'bea', ['admin']);
  await service.admin.post('/api/v1/credentials', { path: 'prod/db', value: 'a first value' });
  const agent = await service.agent('reader', { 'prod/*': ['retrieve'] });
  await agent.get('/api/v1/credentials/prod/db');
  const { page } = await browser.open(t, `${service.address}/console/`);
  await signInByKeys(page, operator.token);
  await goTo(page, 'Agents');
  await page.getByRole('grid').getByText('reader').waitFor();
  await tabTo(page, /^Agents by name$/);
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'reader' }).getByText('seen: rotate').waitFor();
  await tabTo(page, /^Panic$/);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByText('1 active lease', { exact: true }).waitFor();
  await tabTo(page, /^Type reader to confirm$/);
  await page.keyboard.type('reader');
  await page.keyboard.press('Enter');
  await page.getByText(/^1 lease revoked, 1 session ended, 0 requests aborted\./).waitFor();
  await untilTrue(page, `${FOCUSED} === 'Everything that “reader” held has ended'`);
  assert.equal((await agent.get('/api/v1/credentials/prod/db')).status, 401);
  await tabTo(page, /^Values to rotate$/);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Credentials', level: 1 }).waitFor();
  await page.waitForURL(/path=prod%2Fdb$/);
});
