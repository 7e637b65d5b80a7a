// Moving through the console: the palette, Back, where the focus goes, and results that are in sight.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { isSeen, signIn, startBrowser, untilSeen, untilTrue } from '../kit/browser.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
const at = (path: string): string => `${service.address}/console${path}`;
const NAMES = Array.from({ length: 20 }, (_, index) => `many-${String(index).padStart(2, '0')}`);

for (const name of NAMES) {
  const policy = { name, principal: 'agent:*', resources: [`${name}/*`], actions: ['retrieve'] };
  assert.equal((await admin.post('/api/v1/policies', policy)).status, 201);
}

async function search(page: Page, text: string): Promise<Locator> {
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox', { name: /^Search pages/ });
  await field.fill(text);
  return field;
}

/** Waits until the focus is on what has the text. */
const untilFocused = (page: Page, pattern: RegExp): Promise<void> =>
  untilTrue(
    page,
    `${pattern}.test(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent)`,
  );

test('the palette keeps the chosen option in sight, acts on the main button alone, and says when it cannot search', async (t) => {
  const opened = await browser.open(t, at('/log'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await search(page, 'many-');
  const results = page.getByRole('listbox', { name: 'Results' });
  await results.getByRole('option').filter({ hasText: 'many-19' }).waitFor();
  for (let step = 0; step < 19; step++) await page.keyboard.press('ArrowDown');
  const chosen = results.getByRole('option', { selected: true });
  await chosen.filter({ hasText: 'many-19' }).waitFor();
  await untilSeen(chosen);
  const isInList = `(() => {
    const [list, option] = ['.palette-list', '[aria-selected="true"]'].map((each) =>
      document.querySelector(each).getBoundingClientRect());
    return option.top >= list.top - 1 && option.bottom <= list.bottom + 1;
  })()`;
  await untilTrue(page, isInList);
  assert.deepEqual(await violationsOf(page), []);
  await chosen.click({ button: 'right' });
  await page.keyboard.press('ArrowUp');
  await results.getByRole('option', { selected: true }).filter({ hasText: 'many-18' }).waitFor();
  await results.getByRole('option', { selected: true }).click();
  await page.getByRole('complementary', { name: 'many-18' }).waitFor();
  const isReported = opened.expectReport(/ERR_FAILED/);
  await page.route('**/api/v1/search?*', (route) => route.abort());
  await search(page, 'unfindable');
  const dialog = page.getByRole('dialog', { name: 'Search', exact: true });
  await dialog.getByRole('alert').getByText('UNREACHABLE').waitFor();
  // Nothing was answered, so no request has an id.
  assert.equal(await dialog.getByText('Request', { exact: true }).count(), 0);
  assert.equal(await dialog.getByText('No results').count(), 0);
  assert.deepEqual(await violationsOf(page), []);
  await page.unrouteAll();
  await dialog.getByRole('button', { name: 'Try again' }).click();
  await dialog.getByText('No results').waitFor();
  await isReported();
});

test('a search that is not answered yet does not say that nothing has the name', async (t) => {
  const opened = await browser.open(t, at('/log'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/api/v1/search?*', async (route) => {
    await held;
    await route.continue();
  });
  await search(page, 'many-07');
  await page.getByText('Searching…').waitFor();
  assert.equal(await page.getByText('No results').count(), 0);
  release();
  await page.getByRole('option', { name: /^many-07/ }).waitFor();
  await page.getByText('1 found').waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('Back returns to the view before, and not through what was typed', async (t) => {
  const opened = await browser.open(t, at('/access'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('button', { name: 'Policies' }).click();
  await page.getByRole('grid').getByText('many-03', { exact: true }).click();
  await page.getByRole('complementary', { name: 'many-03' }).waitFor();
  await page.getByRole('grid').getByText('many-04', { exact: true }).click();
  await page.getByRole('complementary', { name: 'many-04' }).waitFor();
  const find = page.getByRole('textbox', { name: 'Find' });
  for (const text of ['many-0', 'many-04']) {
    await find.fill(text);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**q=${text}`);
  }
  await page.goBack();
  await page.getByRole('complementary', { name: 'many-03' }).waitFor();
  assert.equal(await find.inputValue(), '');
  await page.goBack();
  await page.getByRole('complementary').waitFor({ state: 'detached' });
  await page.getByRole('grid').waitFor();
  await page.goBack();
  await page.getByRole('button', { name: 'Matrix', exact: true, includeHidden: false }).waitFor();
  await page.waitForURL(at('/access'));
  assert.deepEqual(await violationsOf(page), []);
});

test('the focus returns to what opened a panel, and a panel that follows a dialog takes it', async (t) => {
  const opened = await browser.open(t, at('/access?view=policies'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const grid = page.getByRole('grid');
  await grid.getByText('many-00', { exact: true }).waitFor();
  await grid.focus();
  await page.keyboard.press('Enter');
  await untilFocused(page, /^many-00$/);
  await page.keyboard.press('Escape');
  await untilFocused(page, /^Policies by name$/);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await untilFocused(page, /^many-01$/);
  await page.getByRole('button', { name: 'Close' }).click();
  await untilFocused(page, /^Policies by name$/);
  // The row of a deleted policy is gone.
  await grid.getByText('many-02', { exact: true }).click();
  await page.getByRole('complementary').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('many-02');
  await page.keyboard.press('Enter');
  await page.getByRole('complementary').waitFor({ state: 'detached' });
  await untilFocused(page, /^Policies by name$/);
  await page.goto(at('/agents'));
  await page.getByRole('button', { name: 'Register an agent' }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('newcomer');
  await page
    .getByRole('dialog')
    .getByLabel(/^A key pair made by the server/)
    .check();
  await page.getByRole('dialog').getByRole('button', { name: 'Register' }).click();
  await page.getByRole('complementary', { name: 'newcomer' }).waitFor();
  await untilFocused(page, /^newcomer$/);
  await page.keyboard.press('Escape');
  await untilFocused(page, /^Register an agent$/);
  assert.deepEqual(await violationsOf(page), []);
});

for (const colorScheme of ['light', 'dark'] as const) {
  test(`a result is in sight and leaves the focus where it is, in the ${colorScheme} theme, also at 360 pixels`, async (t) => {
    const opened = await browser.open(t, at('/settings?section=backups'), { colorScheme });
    const { page } = opened;
    await signIn(opened, service.adminToken);
    // No permission: the text says so.
    const copy = page.getByRole('button', { name: 'Copy the command', exact: true });
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 740 });
      await copy.focus();
      const result = page.getByText(/^Copied the command\.|^The browser does not allow copying/);
      const isSaid = async (): Promise<boolean> => {
        await page.keyboard.press('Enter');
        return isSeen(result);
      };
      // It stays for seconds, and a busy machine may look later.
      await until(isSaid, 120_000, () => 'the result is not in sight');
      await untilFocused(page, /^Copy the command$/);
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width);
      assert.deepEqual(await violationsOf(page), []);
    }
  });
}

test('at 360 pixels the navigation shows the page that is open', async (t) => {
  const opened = await browser.open(t, at('/settings'), { viewport: { width: 360, height: 740 } });
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const link = (name: string) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name });
  await untilSeen(link('Settings'));
  await page.goto(at('/now'));
  await untilSeen(link('Now'));
  await search(page, 'log');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Audit log', level: 1 }).waitFor();
  await untilSeen(link('Audit log'));
  assert.deepEqual(await violationsOf(page), []);
});
