// Every page with data, in both themes: accessible, without a report of the browser, within 360 pixels, and as a
// picture for docs/console.md.

import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { signIn, startBrowser } from '../kit/browser.ts';
import { executeSql } from '../kit/direct-db.ts';
import { invite, toLocalhost } from '../kit/sign-in.ts';
import { settle, violationsOf } from './accessibility.ts';
import { takePicture } from './pictures.ts';
import { buildScene } from './scene.ts';

const { service, token, now } = await buildScene({ after });
const browser = await startBrowser({ after });
const NARROW = { width: 360, height: 740 };
const WIDE = { width: 1280, height: 800 };
const LOOK = { timezoneId: 'UTC', viewport: WIDE, reducedMotion: 'reduce' } as const;
const ALTERED = 168;

/** What makes the window or its main part scroll sideways: the outermost elements that reach beyond it. */
const TOO_WIDE = `(() => {
  const scrolls = [document.documentElement, document.querySelector('main')].some((each) => each.scrollWidth > innerWidth);
  const beyond = (element) => element !== null && element.getBoundingClientRect().right > innerWidth;
  const found = [...document.querySelectorAll('body *')].filter((each) => beyond(each) && !beyond(each.parentElement));
  if (!scrolls) return [];
  // What scrolls without an element beyond the edge, such as an overflow, has no name.
  return found.length === 0 ? ['scrolls'] : found.map(({ tagName, className }) => tagName + '.' + className);
})()`;

interface Place {
  /** The heading of the page. */
  readonly title: string;
  readonly address: string;
  readonly picture?: string;
  /** The button that opens a dialog. */
  readonly button?: string | RegExp;
}

const DENIED = 'view=simulator&for=intern-bot&action=retrieve&path=prod/db/password';
const PLACES: readonly Place[] = [
  { title: 'Now', address: '/now', picture: 'now' },
  { title: 'Approvals', address: '/approvals', picture: 'approvals' },
  { title: 'Access', address: '/access', picture: 'access' },
  { title: 'Access', address: `/access?${DENIED}`, picture: 'simulator' },
  { title: 'Access', address: '/access?view=policies', button: 'New policy' },
  { title: 'Access', address: '/access?view=policies&policy=billing-asks' },
  { title: 'Approvals', address: '/approvals?view=history' },
  { title: 'Approvals', address: '/approvals?view=grants' },
  { title: 'Credentials', address: '/credentials?path=prod/db/password', picture: 'credentials' },
  { title: 'Credentials', address: '/credentials', button: 'Store a credential' },
  { title: 'Credentials', address: '/credentials?path=prod/db/password', button: 'Reveal…' },
  { title: 'Credentials', address: '/credentials?path=prod/db/password', button: /^Delete…$/ },
  { title: 'Credentials', address: '/credentials?path=stripe/key', button: 'Edit targets…' },
  { title: 'Agents', address: '/agents?agent=deploy-bot', picture: 'agents' },
  { title: 'Agents', address: '/agents', button: 'Register an agent' },
  { title: 'Agents', address: '/agents', button: 'Panic: end everything' },
  { title: 'Agents', address: '/agents?agent=deploy-bot', button: /^Panic$/ },
  { title: 'Audit log', address: '/log?entry=40', picture: 'log' },
  { title: 'Settings', address: '/settings', picture: 'settings' },
  { title: 'Settings', address: '/settings?section=sign-in' },
  { title: 'Settings', address: '/settings?section=keys' },
  { title: 'Settings', address: '/settings?section=backups' },
  { title: 'Settings', address: '/settings?section=about' },
];
const SCHEMES = ['light', 'dark'] as const;

async function openSignedIn(t: TestContext): Promise<Page> {
  const opened = await browser.open(t, `${service.address}/console/`, LOOK);
  await opened.page.clock.setFixedTime(now);
  await signIn(opened, token);
  return opened.page;
}

/** Examines the page in both themes, and in a narrow window. */
async function examine(page: Page, what: string, picture?: string): Promise<void> {
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violationsOf(page), [], `${what}, ${colorScheme}`);
    if (picture !== undefined) await takePicture(page, `${picture}-${colorScheme}`);
  }
  await page.setViewportSize(NARROW);
  assert.deepEqual(await page.evaluate(TOO_WIDE), [], what);
  await page.setViewportSize(WIDE);
}

test('every page and dialog with data, in both themes and in a narrow window', async (t) => {
  const page = await openSignedIn(t);
  for (const { title, address, picture, button } of PLACES) {
    await page.goto(`${service.address}/console${address}`);
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    await settle(page);
    if (button !== undefined) {
      await page.getByRole('button', { name: button }).click();
      await page.getByRole('dialog').waitFor();
    }
    await examine(page, `${address} ${button ?? ''}`, picture);
  }
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Search pages/ }).waitFor();
  await examine(page, 'palette');
});

test('the pages before a session, in both themes and in a narrow window', async (t) => {
  const address = toLocalhost(service.address);
  const code = await invite(service, 'newcomer');
  const { page } = await browser.open(t, `${address}/console/enrol#${code}`, LOOK);
  await page.getByLabel('Name of this passkey').waitFor();
  await examine(page, 'enrol');
  await page.goto(`${address}/console/enrol`);
  await page.getByText('This invitation link is incomplete').waitFor();
  await examine(page, 'enrol without a code');
  await page.goto(`${address}/console/callback?code=unknown&state=unknown`);
  await page.getByRole('alert').waitFor();
  await examine(page, 'callback');
});

test('the verification of a modified audit log', async (t) => {
  await executeSql(service.dataDir, `UPDATE audit_entries SET resource = 'another' WHERE seq = ${ALTERED}`);
  const page = await openSignedIn(t);
  await page.goto(`${service.address}/console/log`);
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
  await page.getByRole('heading', { name: 'Around the break' }).waitFor();
  await settle(page);
  await examine(page, 'verification');
});
