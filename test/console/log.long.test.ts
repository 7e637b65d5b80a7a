// The log page in a real browser: no row, one row, 100,000 rows, filters in the address, details, hostile names.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { newId } from '../../src/crypto/primitives.ts';
import { rewriteLog } from '../e2e/rewrite-log.ts';
import { signIn, startBrowser } from '../kit/browser.ts';
import { ENTRY_COLUMNS, executeSql } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { settle, violationsOf } from './accessibility.ts';

const ROWS = 100_000;
const HOSTILE = '<img src=x onerror=alert(1)><script>alert(2)</script>';

const service = await startTestService({ after });
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/log${query}`;

/** Entries that were not made by the server: the log is then broken after its own entries, which lists ignore. */
async function addEntries(count: number): Promise<void> {
  await executeSql(
    service.dataDir,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    INSERT INTO audit_entries (${ENTRY_COLUMNS}) SELECT (SELECT max(seq) FROM audit_entries) + i, 'id-' || i, '2026-01-31T00:00:00.000Z', 'credential.retrieve',
      'agent-' || (i % 10), CASE WHEN i = ${count} THEN '${HOSTILE}' ELSE 'prod/key' || i END, 'retrieve',
      CASE WHEN i % 5 = 0 THEN 'denied' ELSE 'allowed' END, NULL, NULL, NULL, NULL, NULL, '' FROM n`,
  );
}

test('a filter without entries teaches the next step, and an address with filters shows one row', async (t) => {
  const opened = await browser.open(t, at('?agent=no-such-agent'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'No matching entries' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('button', { name: 'Clear filters' }).click();
  assert.equal(await page.getByRole('textbox', { name: 'Agent' }).inputValue(), '');
  await page.getByLabel('Event').fill('service.start');
  await page.keyboard.press('Enter');
  await page.getByText('1 entry', { exact: true }).first().waitFor();
  assert.equal(await page.evaluate('document.activeElement.value'), 'service.start', 'the focus stays in the filter');
  await page.waitForURL(/\?event_type=service\.start$/);
  const grid = page.getByRole('grid');
  await grid.getByRole('row').nth(1).waitFor();
  assert.equal(await grid.getByRole('row').count(), 2);
  await grid.focus();
  await page.keyboard.press('Enter');
  const panel = page.getByRole('complementary');
  await panel.getByText('service.start').waitFor();
  await page.waitForURL(/entry=1\b/);
  await panel.getByRole('button', { name: 'Create the receipt' }).click();
  await panel.getByRole('button', { name: 'Save the receipt' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
});

test('verification of an intact log says so', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
  await page.getByText('The chain is intact').waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('verification shows its progress until it ends', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  const { promise: isShown, resolve: release } = Promise.withResolvers<void>();
  await page.route(/\/audit\/verify$/, (route) => isShown.then(() => route.continue()));
  let checked = 12_345;
  await page.route(/\/audit\/verify\/progress$/, (route) => {
    const data = { running: true, entries_checked: checked, entries_total: 9_000_000, started_at: null };
    return route.fulfill({ json: { data } });
  });
  await signIn(opened, service.adminToken);
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('12,345 of 9,000,000 entries').waitFor();
  const bar = dialog.getByRole('progressbar', { name: 'Progress of the verification' });
  assert.equal(await bar.getAttribute('max'), '9000000');
  assert.deepEqual(await violationsOf(page), []);
  // Read again as long as the verification runs.
  checked = 37_035;
  await dialog.getByText('37,035 of 9,000,000 entries').waitFor();
  release();
  await dialog.getByText('The chain is intact').waitFor();
  assert.equal(await bar.count(), 0);
});

test('the live log shows a new entry, and an export has every entry of the filter', async (t) => {
  const opened = await browser.open(t, at('?event_type=credential.store'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'No matching entries' }).waitFor();
  await page.getByLabel('Live').check();
  await page.waitForURL(/tail=on/);
  await service.admin.post('/api/v1/credentials', { path: 'prod/new', value: 'secret-value' });
  await page.getByRole('grid').getByText('prod/new').waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export' }).click(),
  ]);
  const lines = readFileSync(await download.path(), 'utf8')
    .trim()
    .split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).resource),
    ['prod/new'],
  );
});

for (const { title, edit, found, row } of [
  {
    title: 'an altered entry',
    edit: `UPDATE audit_entries SET resource = 'another' WHERE seq = 241`,
    found: /its content or its MAC was altered/,
    row: /^241\b.*broken here/s,
  },
  {
    title: 'a removed entry',
    edit: 'DELETE FROM audit_entries WHERE seq = 241',
    found: /the entry is missing/,
    row: /^241\b.*No entry with this number is stored.*missing/s,
  },
]) {
  test(`verification points at ${title}, and its neighbours are listed`, async (t) => {
    const dataDir = join(temporaryDirectory(t), 'data');
    await (await startTestService(t, [], dataDir)).stop();
    await rewriteLog(dataDir, (entries) => [
      ...entries,
      ...Array.from({ length: 300 }, () => entries.slice(-1).map((entry) => ({ ...entry, id: newId() }))).flat(),
    ]);
    const { address, adminToken } = await startTestService(t, [], dataDir);
    await executeSql(dataDir, edit);
    const opened = await browser.open(t, `${address}/console/log`);
    const { page } = opened;
    await signIn(opened, adminToken);
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('heading', { name: 'Around the break' }).waitFor();
    assert.match(await dialog.getByRole('status').innerText(), found);
    const rows = await dialog.getByRole('table').getByRole('row').allInnerTexts();
    assert.deepEqual(
      rows.slice(1).map((text) => Number.parseInt(text, 10)),
      [238, 239, 240, 241, 242, 243, 244],
    );
    assert.match(rows[4] ?? '', row);
    assert.match(rows[3] ?? '', /intact/);
    assert.match(rows[5] ?? '', /not proven/);
    assert.deepEqual(await violationsOf(page), []);
  });
}

test('100,000 rows scroll to their end, draw only those in sight, and hostile names are text', async (t) => {
  await addEntries(ROWS);
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page
    .getByText(/^100,0\d\d entries$/)
    .first()
    .waitFor();
  const grid = page.getByRole('grid');
  await grid.focus();
  await page.getByText(HOSTILE).waitFor();
  assert.equal(await page.locator('img, script:not([src])').count(), 0);
  await page.keyboard.press('End');
  await grid.getByText('service.start').waitFor();
  assert.ok((await grid.getByRole('row').count()) < 80);
  await page.keyboard.press('Home');
  await page.getByText(HOSTILE).waitFor();
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
  await page.getByText(/^The audit log was modified at entry \d+\./).waitFor();
  await page.getByRole('heading', { name: 'Around the break' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.keyboard.press('Escape');
  const frames = await page.evaluate<number>(SCROLL);
  t.diagnostic(`${frames.toFixed(1)} frames/s`);
  assert.deepEqual(await violationsOf(page), []);
});

test('with 100,000 entries the page Now has the newest ones, and hostile names are text', async (t) => {
  const opened = await browser.open(t, `${service.address}/console/now`);
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const rowsOf = (name: string) => page.getByRole('region', { name }).getByRole('listitem');
  await rowsOf('Denials').first().getByText(HOSTILE).waitFor();
  await rowsOf('Brokered requests and retrievals').nth(7).waitFor();
  assert.deepEqual([await rowsOf('Brokered requests and retrievals').count(), await rowsOf('Denials').count()], [8, 8]);
  assert.match(
    await rowsOf('Brokered requests and retrievals').first().innerText(),
    /agent-9 retrieved prod\/key99999/,
  );
  assert.equal(await page.locator('img:not([role]), script:not([src])').count(), 0);
  await settle(page);
  assert.deepEqual(await violationsOf(page), []);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});

/** Scrolls for two seconds through a large part of the list; the value is the frames of one second. */
const SCROLL = `new Promise((resolve) => {
  const grid = document.querySelector('[role="grid"]');
  const start = performance.now();
  let frames = 0;
  const step = (now) => {
    frames += 1;
    grid.scrollTop += 400;
    if (now - start < 2000) requestAnimationFrame(step);
    else resolve((frames * 1000) / (now - start));
  };
  requestAnimationFrame(step);
})`;
