// The console in a real browser, over a long log: what its first page loads and how soon it can be used, the frames of
// a list that scrolls, and how soon a filter shows its rows. The browser shares the processors with the service.

import type { BrowserContextOptions, Page } from 'playwright-core';
import { signIn, startBrowser, type TestBrowser, untilTrue } from '../test/kit/browser.ts';
import { createClient } from '../test/kit/client.ts';
import { type Scope, withScope } from '../test/kit/directory.ts';
import { addOperator } from '../test/kit/operators.ts';
import { toFigure } from './measurement.ts';
import { benchAgent } from './targets.ts';
import type { Figure, Stage } from './types.ts';
import { removeVault, SMALL, startVault } from './vault.ts';

const SCROLL_MS = 4000;
const SCROLL_PIXELS_A_SECOND = 8000;
/** In the page: counts its frames, and the longest pause between two. */
const COUNT_FRAMES = `window.frames = { count: 0, startedAt: performance.now(), longestMs: 0 };
  let previous = performance.now();
  (function next(now) {
    window.frames.count += 1;
    window.frames.longestMs = Math.max(window.frames.longestMs, now - previous);
    previous = now;
    requestAnimationFrame(next);
  })(previous);`;
const READ_FRAMES = `({ perSecond: window.frames.count / (performance.now() - window.frames.startedAt) * 1000,
  longestMs: window.frames.longestMs })`;

type SignedIn = Required<BrowserContextOptions>['storageState'];

/** One of each in a round. */
interface Round {
  readonly kib: number;
  readonly interactiveMs: number;
  readonly perSecond: number;
  readonly longestMs: number;
  readonly filterMs: number;
  readonly apiMs: number;
}

export async function measureConsole(stage: Stage): Promise<Figure[]> {
  const { scope, plan, say } = stage;
  const vault = await startVault(stage, { ...SMALL, entries: plan.logEntries });
  const { address, adminToken } = vault.service;
  const viewer = await addOperator({ address, admin: createClient(address, adminToken) }, 'viewer', ['viewer']);
  const browser = await startBrowser(scope);
  const state = await withScope((own) => signInOnce(own, browser, address, viewer.token));
  const rounds: Round[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const agent = benchAgent(round % SMALL.agents);
    const first = await withScope((own) => loadFirstPage(own, browser, address, state));
    const list = await withScope((own) => useLog(own, browser, address, state, agent));
    const apiMs = await timeFilter(viewer, agent);
    rounds.push({ ...first, ...list, apiMs });
    say(`Round ${round} of ${plan.rounds}: ${JSON.stringify(rounds.at(-1))}`);
  }
  await removeVault(vault);
  const name = `${plan.logEntries.toLocaleString('en-US')} entries`;
  const figure = (label: string, unit: string, of: (round: Round) => number): Figure =>
    toFigure(label, unit, rounds.map(of));
  return [
    figure('Console, first load', 'KiB', ({ kib }) => kib),
    figure('Console, first load to interactive', 'ms', ({ interactiveMs }) => interactiveMs),
    figure(`Console, scrolling ${name}`, 'frames/s', ({ perSecond }) => perSecond),
    figure(`Console, longest frame while scrolling ${name}`, 'ms', ({ longestMs }) => longestMs),
    figure(`Console, filter of ${name}`, 'ms', ({ filterMs }) => filterMs),
    figure(`Filter of ${name}, API`, 'ms', ({ apiMs }) => apiMs),
  ];
}

async function signInOnce(scope: Scope, browser: TestBrowser, address: string, token: string): Promise<SignedIn> {
  const opened = await browser.open(scope, `${address}/console/`);
  await signIn(opened, token);
  return opened.page.context().storageState();
}

/** A browser without a cache opens the first page of a person who is signed in. */
async function loadFirstPage(scope: Scope, browser: TestBrowser, address: string, storageState: SignedIn) {
  const { page } = await browser.open(scope, 'about:blank', { storageState });
  const protocol = await page.context().newCDPSession(page);
  await protocol.send('Network.enable');
  const files = new Set<string>();
  let bytes = 0;
  protocol.on('Network.responseReceived', ({ requestId, response: { url } }) => {
    if (new URL(url).pathname.startsWith('/console/')) files.add(requestId);
  });
  protocol.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (files.has(requestId)) bytes += encodedDataLength;
  });
  const startedAt = performance.now();
  await page.goto(`${address}/console/`, { waitUntil: 'commit' });
  await page.getByRole('heading', { level: 1 }).waitFor();
  // A press that the page handles shows that it can be used.
  await page.keyboard.press('/');
  await page.getByRole('dialog').waitFor();
  const interactiveMs = performance.now() - startedAt;
  await page.waitForLoadState('networkidle');
  return { kib: bytes / 1024, interactiveMs };
}

async function useLog(scope: Scope, browser: TestBrowser, address: string, storageState: SignedIn, agent: string) {
  const { page } = await browser.open(scope, `${address}/console/log`, { storageState });
  const grid = page.getByRole('grid');
  await grid.getByRole('row').nth(5).waitFor();
  const frames = await scroll(page);
  const startedAt = performance.now();
  await page.getByRole('combobox', { name: 'Agent' }).fill(agent);
  await page.keyboard.press('Enter');
  // Only the filtered list begins with this agent in each of its first rows.
  await untilTrue(
    page,
    `[...document.querySelectorAll('[role=grid] [role=row]')].slice(1, 12).every((row) => row.children[3]?.textContent === ${JSON.stringify(agent)})`,
  );
  return { ...frames, filterMs: performance.now() - startedAt };
}

async function scroll(page: Page): Promise<{ perSecond: number; longestMs: number }> {
  const protocol = await page.context().newCDPSession(page);
  await page.evaluate(COUNT_FRAMES);
  await protocol.send('Input.synthesizeScrollGesture', {
    x: 640,
    y: 600,
    yDistance: (-SCROLL_PIXELS_A_SECOND * SCROLL_MS) / 1000,
    speed: SCROLL_PIXELS_A_SECOND,
    gestureSourceType: 'mouse',
  });
  return page.evaluate(READ_FRAMES);
}

async function timeFilter(viewer: { get(path: string): Promise<{ status: number }> }, agent: string): Promise<number> {
  const startedAt = performance.now();
  const { status } = await viewer.get(`/api/v1/audit?agent=${agent}&limit=200`);
  if (status !== 200) throw new Error(`the filtered log returned ${status}`);
  return performance.now() - startedAt;
}
