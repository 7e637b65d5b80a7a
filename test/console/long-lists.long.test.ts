// The pages about people and agents with 100,000 rows, and the inbox with 1,000 requests. WHY pages of lists that the
// test makes: a server with so many agents and approvals takes a minute to fill, and these tests are about the page.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';
import { settle, violationsOf } from './accessibility.ts';

const ROWS = 100_000;
const HOSTILE = '<b>\u202e</b>'.repeat(40);
const AT = '2026-01-31T00:00:00.000Z';
const KEY = '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';

const service = await startTestService({ after });
const browser = await startBrowser({ after });

/** Answers the pages of a list with rows that are made when they are read. */
async function serveRows(page: Page, path: string, total: number, rowOf: (index: number) => object): Promise<void> {
  await page.route(
    ({ pathname }) => pathname === `/api/v1/${path}`,
    async (route) => {
      const { searchParams } = new URL(route.request().url());
      const [offset, limit] = [Number(searchParams.get('offset') ?? 0), Number(searchParams.get('limit') ?? total)];
      const length = Math.max(0, Math.min(limit, total - offset));
      const data = Array.from({ length }, (_, index) => rowOf(offset + index));
      await route.fulfill({ json: { data, meta: { total, limit, offset } } });
    },
  );
}

const { body } = await service.admin.post('/api/v1/policies', {
  name: 'model',
  principal: 'agent:*',
  resources: Array.from({ length: 30 }, (_, index) => `${String(index).repeat(60)}/*`),
  actions: ['retrieve'],
});
const policy: object = body.data;

const approvalAt = (index: number, status: string) => ({
  approval_id: `019d2e93-1994-7e10-8a5c-${String(index).padStart(12, '0')}`,
  nonce: 'nonce',
  status,
  agent_name: `agent-${index % 10}`,
  action: 'use',
  path: `prod/key${index}`,
  policy_names: ['payments'],
  covers: 'This exact request, once.',
  each: 'request',
  uses: 1,
  seconds: 300,
  for_session: false,
  quorum: 1,
  approvals: [],
  method: 'POST',
  host: 'api.example.com',
  target_path: `/v1/${index}`,
  purpose: HOSTILE,
  requested_at: AT,
  expires_at: '2099-01-01T00:00:00.000Z',
  answered_at: null,
  answered_by: null,
  reason: null,
  uses_left: null,
  grant_ends_at: null,
});

const LISTS = [
  {
    path: 'agents',
    at: '/agents',
    rowOf: (index: number) => ({ name: `agent-${index}`, description: HOSTILE, public_key: KEY, registered_at: AT }),
    last: `agent-${ROWS - 1}`,
  },
  {
    path: 'policies',
    at: '/access?view=policies',
    rowOf: (index: number) => ({ ...policy, name: `policy-${index}` }),
    last: `policy-${ROWS - 1}`,
  },
  {
    path: 'operators',
    at: '/settings',
    rowOf: (index: number) => ({
      name: `operator-${index}`,
      description: HOSTILE,
      roles: ['viewer'],
      public_key: null,
      passkeys: [],
      identity: null,
      added_at: AT,
    }),
    last: `operator-${ROWS - 1}`,
  },
  {
    path: 'approvals',
    at: '/approvals?view=history',
    rowOf: (index: number) => approvalAt(index, 'timed_out'),
    last: `prod/key${ROWS - 1}`,
  },
];

for (const { path, at, rowOf, last } of LISTS) {
  test(`100,000 ${path} scroll to their end, and only those in sight are drawn`, async (t) => {
    const opened = await browser.open(t, `${service.address}/console${at}`);
    const { page } = opened;
    await serveRows(page, path, ROWS, rowOf);
    await signIn(opened, service.adminToken);
    const grid = page.getByRole('grid');
    await grid.getByRole('row').nth(1).waitFor();
    await grid.focus();
    await page.keyboard.press('End');
    await grid.getByText(last, { exact: true }).waitFor();
    assert.ok((await grid.getByRole('row').count()) < 80);
    assert.equal(await grid.locator('b').count(), 0);
    assert.deepEqual(await violationsOf(page), []);
  });
}

test('of 1,000 requests that wait, the newest are cards, and each can be reached', async (t) => {
  const opened = await browser.open(t, `${service.address}/console/approvals`);
  const { page } = opened;
  await serveRows(page, 'approvals', 1000, (index) => approvalAt(index, 'pending'));
  await page.route(/\/api\/v1\/approvals\/019/, async (route) => {
    const index = Number(/(\d{12})$/.exec(new URL(route.request().url()).pathname)?.[1]);
    await route.fulfill({ json: { data: { ...approvalAt(index, 'pending'), request: null } } });
  });
  await signIn(opened, service.adminToken);
  await page.getByText('1,000 pending requests, newest first.').waitFor();
  await untilTrue(page, `document.title === '(1000) Approvals · Leasehold'`);
  const cards = page.getByRole('article');
  assert.equal(await cards.count(), 20);
  await page.getByRole('button', { name: 'Show more' }).click();
  await cards.nth(39).waitFor();
  assert.equal(await page.locator('article b').count(), 0);
  assert.deepEqual(await violationsOf(page), []);
});

test('with 100,000 leases and requests that wait, the page Now has their numbers and the newest of them', async (t) => {
  const opened = await browser.open(t, `${service.address}/console/now`);
  const { page } = opened;
  await serveRows(page, 'approvals', ROWS, (index) => approvalAt(index, 'pending'));
  await serveRows(page, 'leases', ROWS, (index) => ({
    lease_id: `lease-${index}`,
    agent_name: `agent-${index}`,
    path: `prod/${'wide'.repeat(60)}${index}`,
    version: 1,
    policy_name: 'model',
    issued_at: AT,
    expires_at: '2099-01-01T00:00:00.000Z',
    revoked_at: null,
    status: 'active',
  }));
  await signIn(opened, service.adminToken);
  for (const name of ['Pending approvals', 'Active leases']) {
    const section = page.getByRole('region', { name });
    await section.getByRole('heading', { name: `${name} (100,000)` }).waitFor();
    const shown = await section.getByRole('listitem').count();
    assert.ok(shown > 0 && shown <= 8, `${shown} rows of ${name}`);
  }
  await settle(page);
  assert.deepEqual(await violationsOf(page), []);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});
