// The plot of the page Now in a real browser: its lines, the times on its axis, and its table.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/now${query}`;

const MINUTE_MS = 60_000;
const NEWEST = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
/** One of each thing, in different minutes, so that no line covers another. */
const minutes = Array.from({ length: 60 }, (_, index) => ({
  at: new Date(NEWEST - (59 - index) * MINUTE_MS).toISOString(),
  retrievals: Number(index === 20),
  uses: Number(index === 30),
  denials: Number(index === 40),
}));

test('the plot has a table, and writes its times in the chosen zone', async (t) => {
  const opened = await browser.open(t, at(''), { timezoneId: 'Asia/Kathmandu' });
  const { page } = opened;
  await page.route('**/api/v1/activity', (route) => route.fulfill({ json: { data: minutes } }));
  await page.reload();
  await signIn(opened, service.adminToken);
  await page.getByText('In the last hour on this node: 1 retrieval, 1 brokered request and 1 denial.').waitFor();
  const lines = page.getByRole('img', { name: /^Decisions of the last hour: 1 retrieval/ }).locator('polyline');
  const points = (await lines.first().getAttribute('points'))?.split(' ') ?? [];
  // The first line has one peak, in its minute.
  assert.deepEqual(
    [await lines.count(), points.length, points.findIndex((point) => point.endsWith(',0'))],
    [3, 60, 20],
  );
  await page.getByText('As a table').click();
  await page.getByRole('columnheader', { name: 'Denials' }).waitFor();
  assert.equal(await page.getByRole('table', { name: 'Decisions of the last hour' }).getByRole('row').count(), 4);
  const clockIn = (timeZone: string): string =>
    new Intl.DateTimeFormat('sv', { timeZone, timeStyle: 'short' }).format(Date.parse(minutes[0]?.at ?? ''));
  const scale = page.locator('.plot-scale').last();
  await scale.getByText(clockIn('Asia/Kathmandu')).waitFor();
  await page.getByRole('combobox', { name: 'Time zone' }).selectOption('UTC');
  await scale.getByText(clockIn('UTC')).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});
