// The log page: times in the chosen zone, the live log, details next to the table, and exports.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, untilSeen, untilTrue } from '../kit/browser.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/log${query}`;

const store = (path: string): Promise<unknown> => admin.post('/api/v1/credentials', { path, value: 'secret-value' });

test('a filter by time takes the time as the table shows it, in local time and in UTC', async (t) => {
  const opened = await browser.open(t, at(''), { timezoneId: 'Asia/Tokyo' });
  const { page } = opened;
  await signIn(opened, service.adminToken);
  // A time of a link without an offset is UTC, as the server reads it.
  await page.goto(at('?since=2026-01-31T14:05:09'));
  assert.equal(await page.getByLabel('Since (local time)').inputValue(), '2026-01-31T23:05:09');
  await page.getByLabel('Since (local time)').fill('2026-01-31T09:00:00');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('since') === '2026-01-31T00:00:00Z');
  await page
    .getByText(/^\d+ entr(y|ies)$/)
    .first()
    .waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
  await page.getByLabel('Time zone').selectOption('UTC');
  const until = page.getByLabel('Until (UTC)');
  const { width = 0 } = (await page.getByLabel('Since (UTC)').boundingBox()) ?? {};
  assert.ok(width > 200, `${width} px hide a part of the time`);
  assert.match(await page.getByLabel('Since (UTC)').inputValue(), /^2026-01-31T00:00(?::00)?$/);
  await until.fill('2026-02-01T12:30:15');
  await page.getByLabel('Since (UTC)').focus();
  await page.waitForURL((url) => url.searchParams.get('until') === '2026-02-01T12:30:15Z');
  await page.getByRole('heading', { name: 'No matching entries' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await untilTrue(page, `document.querySelector('input[type="datetime-local"]').value === ''`);
  assert.equal(new URL(page.url()).search, '');
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(await violationsOf(page), []);
});

test('a drag selects text and opens nothing, and details leave the result and the reason in sight', async (t) => {
  await store('drag/one');
  await store('drag/two');
  const agent = await service.agent('prying');
  await agent.get('/api/v1/credentials/drag/one');
  const opened = await browser.open(t, at('?resource=drag/*'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const grid = page.getByRole('grid');
  const cell = grid.getByRole('gridcell', { name: 'drag/two' });
  await cell.waitFor();
  const { x = 0, y = 0, height = 0 } = (await cell.boundingBox()) ?? {};
  await page.mouse.move(x + 9, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + 60, y + height / 2, { steps: 5 });
  await page.mouse.up();
  await untilTrue(page, `getSelection().toString() !== ''`);
  await grid.getByRole('row').filter({ hasText: 'denied' }).click();
  const panel = page.getByRole('complementary');
  await panel.getByText('event type', { exact: true }).waitFor();
  assert.equal(await panel.getByText('event_type').count(), 0);
  for (const title of ['Time', 'Event', 'Result', 'Reason']) {
    const header = grid.getByRole('columnheader', { name: title });
    const isInTable = async (): Promise<boolean> => {
      const [head, table] = [await header.boundingBox(), await grid.boundingBox()];
      return head !== null && table !== null && head.x + head.width <= table.x + table.width;
    };
    await until(isInTable, 120_000, () => `${title} is out of sight`);
  }
  await untilSeen(grid.getByRole('columnheader', { name: 'Reason' }));
  assert.deepEqual(await violationsOf(page), []);
  // The drag was no step: Back closes the only panel that was opened.
  await page.goBack();
  await panel.waitFor({ state: 'detached' });
  await grid.getByRole('columnheader', { name: 'Resource' }).waitFor();
  assert.equal(new URL(page.url()).searchParams.get('entry'), null);
});

test('an export can be cancelled while it runs, and says why it failed', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  opened.expectReport(/ERR_FAILED .*\/audit\/export/);
  await signIn(opened, service.adminToken);
  const first = Promise.withResolvers<void>();
  await page.route(/\/audit\/export/, (route) => first.promise.then(() => route.abort()));
  await page.getByRole('button', { name: 'Export' }).click();
  await page.getByRole('button', { name: /^Cancel the export/ }).waitFor();
  first.resolve();
  await page.getByRole('alert').waitFor();
  await page.getByRole('button', { name: 'Export', exact: true }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('a result stays in sight for its time, and what is said quietly meanwhile comes after it', async (t) => {
  const opened = await browser.open(t, at('?event_type=credential.store'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const counted = page.getByText(/^\d+ entries$/).first();
  await counted.waitFor();
  const before = Number.parseInt((await counted.textContent()) ?? '', 10);
  await page.clock.install();
  // When the region says what, by the page's clock.
  await page.evaluate(`{
    const region = document.querySelector('[role="status"][popover]');
    window.said = {};
    const note = () => (window.said[region.textContent] ??= { at: Date.now(), isShown: region.className === 'toast' });
    new MutationObserver(note).observe(region, { attributes: true, childList: true, characterData: true, subtree: true });
  }`);
  await page.getByRole('button', { name: 'Export' }).click();
  await untilTrue(page, `'The export is saved.' in window.said`);
  await store('quiet/first');
  await page.getByRole('button', { name: 'Refresh' }).click();
  const count = `${before + 1} entries`;
  await page.getByText(count, { exact: true }).first().waitFor();
  await page.clock.fastForward(7000);
  await untilTrue(page, `'${count}' in window.said`);
  type Said = { readonly at: number; readonly isShown: boolean };
  const said: Record<string, Said> = await page.evaluate('window.said');
  const [result, quiet] = [said['The export is saved.'], said[count]];
  assert.ok(result && quiet);
  assert.deepEqual([result.isShown, quiet.isShown], [true, false]);
  assert.ok(quiet.at - result.at >= 7000, `${quiet.at - result.at} ms after the result`);
});
