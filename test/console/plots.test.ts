// The plots of the page Now in a real browser: what they draw, the times on their axes, and their tables.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
await service.admin.post('/api/v1/credentials', { path: 'prod/db', value: 'secret-value' });
const agent = await service.agent('deploy-bot', { 'prod/*': ['retrieve'] });
await agent.get('/api/v1/credentials/prod/db');
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/now${query}`;

/** The columns of the plot that has this title which have a pixel of the colour of its first line. */
const columnsOf = (title: string): string => `(() => {
  const figure = [...document.querySelectorAll('.plot')].find((each) => each.textContent.startsWith('${title}'));
  const canvas = figure?.querySelector('canvas');
  if (canvas == null) return { width: 0, columns: [] };
  const [red, green, blue] = getComputedStyle(figure.querySelector('.plot-first')).color.match(/\\d+/g).map(Number);
  // The browser warns about a canvas of the page that is read twice.
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  const columns = new Set();
  for (let at = 0; at < data.length; at += 4)
    if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) columns.add((at / 4) % canvas.width);
  return { width: canvas.width, columns: [...columns].sort((a, b) => a - b) };
})()`;

/** Records what is written on canvases, in the order in which it is written. */
const RECORD_TEXTS = `globalThis.writtenTexts = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    globalThis.writtenTexts.push(text);
    return fillText.call(this, text, ...rest);
  };`;

const MINUTE_MS = 60_000;
/** A minute of the last hour. */
const sampleOf = (minutesAgo: number) => ({
  at: new Date((Math.floor(Date.now() / MINUTE_MS) - minutesAgo) * MINUTE_MS).toISOString(),
  count: 1,
  p50_ms: 4,
  p99_ms: 9,
});

/** Answers with these retrievals in place of those of the service. */
async function showLatency(page: Page, minutesAgo: readonly number[]): Promise<void> {
  await page.route('**/api/v1/latency', (route) =>
    route.fulfill({ json: { data: { retrieve: minutesAgo.map(sampleOf), use: [] } } }),
  );
}

test('the plots have a table, and their range is in the address', async (t) => {
  const opened = await browser.open(t, at('?range=day'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('img', { name: /^Decisions of the last day: in the last day \d+ retrievals?/ }).waitFor();
  await untilTrue(page, `${columnsOf('Decisions')}.columns.length > 0`);
  await page.getByText('As a table').first().click();
  await page.getByRole('columnheader', { name: 'Denials' }).waitFor();
  assert.ok((await page.getByRole('table', { name: 'Decisions of the last day' }).getByRole('row').count()) > 1);
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('radio', { name: 'Last week' }).check();
  assert.match(page.url(), /range=week/);
  await page.getByRole('img', { name: /^Decisions of the last week/ }).waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});

test('the latency of a single minute is a point within the last hour', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await page.addInitScript({ content: RECORD_TEXTS });
  await showLatency(page, [10]);
  await page.reload();
  await signIn(opened, service.adminToken);
  const latency = page.getByRole('region', { name: 'Latency' });
  await latency.getByText('99th percentile of the last hour, this node, in ms').waitFor();
  // Five sixths of the plot's width, whose axis is left of it.
  const isInPlace = `(({ width, columns }) =>
    columns.length > 0 && columns[0] > width * 0.7 && columns.at(-1) < width * 0.95)(${columnsOf('99th')})`;
  await untilTrue(page, isInPlace);
  const texts = await page.evaluate<string[]>('writtenTexts');
  const times = texts.filter((text) => /[-:]/.test(text) || /[a-z]/i.test(text));
  assert.ok(times.length > 0 && times.every((text) => /^(?:\d\d:\d\d|\d{4}-\d\d-\d\d)$/.test(text)), times.join());
  assert.deepEqual(await violationsOf(page), []);
});

test('no line covers minutes in which nothing was measured', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await showLatency(page, [50, 49, 10, 9]);
  await page.reload();
  await signIn(opened, service.adminToken);
  const hasPause = `(({ width, columns }) =>
    columns.some((column, index) => column - (columns[index - 1] ?? column) > width * 0.5))(${columnsOf('99th')})`;
  await untilTrue(page, hasPause);
  assert.deepEqual(await violationsOf(page), []);
});

test('the plots write their times in the chosen zone, and one of each thing in the singular', async (t) => {
  const opened = await browser.open(t, at(''), { timezoneId: 'Asia/Kathmandu' });
  const { page } = opened;
  const bucket = { retrievals: 1, uses: 1, denials: 1 };
  await page.addInitScript({ content: RECORD_TEXTS });
  await page.route('**/api/v1/audit/counts?**', (route) => {
    const since = new URL(route.request().url()).searchParams.get('since') ?? '';
    const buckets = Array.from({ length: 60 }, (_, index) => ({
      at: new Date(Date.parse(since) + index * MINUTE_MS).toISOString(),
      ...(index === 30 ? bucket : { retrievals: 0, uses: 0, denials: 0 }),
      errors: 0,
      entries: 3,
    }));
    return route.fulfill({
      json: { data: { since, until: since, step: 60, complete: true, counted_from: since, buckets } },
    });
  });
  await page.reload();
  await signIn(opened, service.adminToken);
  await page.getByText('In the last hour 1 retrieval, 1 use and 1 denial.').waitFor();
  const writes = (zone: string): string => `(() => {
    const parts = new Intl.DateTimeFormat('sv', { timeZone: '${zone}', dateStyle: 'short', timeStyle: 'short' });
    const hour = [...Array(90).keys()].map((ago) => parts.format(Date.now() - ago * ${MINUTE_MS}).slice(11));
    const times = writtenTexts.filter((text) => /^\\d\\d:\\d\\d$/.test(text));
    return times.length > 1 && times.slice(-2).every((text) => hour.includes(text));
  })()`;
  await untilTrue(page, writes('Asia/Kathmandu'));
  await page.getByRole('combobox', { name: 'Time zone' }).selectOption('UTC');
  await untilTrue(page, writes('UTC'));
  assert.deepEqual(await violationsOf(page), []);
});
