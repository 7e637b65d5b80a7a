// The plot of the page Now in a real browser: what it draws, the times on its axis, and its table.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
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
  await page.addInitScript({ content: RECORD_TEXTS });
  await page.route('**/api/v1/activity', (route) => route.fulfill({ json: { data: minutes } }));
  await page.reload();
  await signIn(opened, service.adminToken);
  await page.getByText('In the last hour on this node: 1 retrieval, 1 use and 1 denial.').waitFor();
  await untilTrue(page, `${columnsOf('Decisions')}.columns.length > 0`);
  await page.getByText('As a table').click();
  await page.getByRole('columnheader', { name: 'Denials' }).waitFor();
  assert.equal(await page.getByRole('table', { name: 'Decisions of the last hour' }).getByRole('row').count(), 4);
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
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});
