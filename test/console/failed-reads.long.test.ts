// What pages show when a read fails: the error, and neither an all-clear nor a count.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, type TestPage } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const browser = await startBrowser({ after });
const at = (path: string): string => `${service.address}/console/${path}`;
const FAILURE = { error: { code: 'INTERNAL_ERROR', message: 'The service failed.' } };

/** The result waits until the browser has reported a failed request. */
async function fail({ page, expectReport }: TestPage, address: RegExp): Promise<() => Promise<void>> {
  const isReported = expectReport(/ 500 /);
  await page.route(address, (route) => route.fulfill({ status: 500, json: FAILURE }));
  return isReported;
}

test('a failed search for what needs attention is not an all-clear', async (t) => {
  const opened = await browser.open(t, at('now'));
  const { page } = opened;
  const isReported = await fail(opened, /\/api\/v1\/attention$/);
  await signIn(opened, service.adminToken);
  const section = page.getByRole('region', { name: 'Needs attention' });
  await section.getByRole('alert').getByText('The service failed.').waitFor();
  assert.equal(await page.getByText(/^No repeated denials/).count(), 0);
  assert.deepEqual(await violationsOf(page), []);
  await isReported();
});

test('an all-clear ends when a later read fails', async (t) => {
  const opened = await browser.open(t, at('now'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const section = page.getByRole('region', { name: 'Denials' });
  await section.getByText('No denials.').waitFor();
  const isReported = await fail(opened, /\/api\/v1\/audit\?/);
  await section.getByRole('alert').waitFor();
  assert.equal(await section.getByText('No denials.').count(), 0);
  await isReported();
});

for (const { page: name, address, read, count } of [
  { page: 'log', address: 'log', read: /\/api\/v1\/audit\?/, count: /^\d+ entr/ },
  { page: 'list of agents', address: 'agents', read: /\/api\/v1\/agents\?/, count: /^\d+ agent/ },
  { page: 'list of leases', address: 'agents?view=leases', read: /\/api\/v1\/leases\?/, count: /^\d+ lease/ },
]) {
  test(`a ${name} that cannot be read has no count`, async (t) => {
    const opened = await browser.open(t, at(address));
    const { page } = opened;
    const isReported = await fail(opened, read);
    await signIn(opened, service.adminToken);
    await page.getByRole('alert').getByText('The service failed.').waitFor();
    assert.equal(await page.getByText(count).count(), 0);
    assert.deepEqual(await violationsOf(page), []);
    await isReported();
  });
}

test('a server that does not respond has one message', async (t) => {
  const opened = await browser.open(t, at('now'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByText('No denials.').waitFor();
  const isReported = opened.expectReport(/ERR_FAILED/);
  await page.route(/\/(?:api|auth)\/|\/health/, (route) => route.abort());
  await page.getByText('The server does not respond.').waitFor();
  for (const name of ['Pending approvals', 'Denials', 'Brokered requests and retrievals', 'Active leases']) {
    await page.getByRole('region', { name }).getByText('Not current: see the notice at the top.').waitFor();
  }
  assert.equal(await page.getByRole('alert').count(), 0);
  assert.equal(await page.locator('.notice.danger').count(), 1);
  assert.equal(await page.getByText('No denials.').count(), 0);
  assert.deepEqual(await violationsOf(page), []);
  await isReported();
});
