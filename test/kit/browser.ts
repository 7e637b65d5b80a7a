/**
 * A real browser for tests: one for each test file, with a separate context for each page. On Linux x64 it comes from
 * the packages of the project; elsewhere an installed Chrome or Chromium is used. A violation of the content security
 * policy, an error on the page's console, or an uncaught error fails the test.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
  type Request,
} from 'playwright-core';
import { closeBeforeRemoval, type Scope, temporaryDirectory } from './directory.ts';
import { until } from './processes.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** The package unpacks into the temporary directory, which this replaces: unpacking takes seconds. */
const UNPACKED = path.join(ROOT, 'node_modules', '.cache', 'chromium-153.0.0');
const INSTALLED = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/usr/bin/google-chrome',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
];
/** Ends only tests that hang. */
const TIMEOUT_MS = 120_000;

export interface TestBrowser {
  /** Opens a page in a new context. The clean-up of `scope` fails if the page reported a violation or an error. */
  open(scope: Scope, address: string, options?: BrowserContextOptions): Promise<TestPage>;
}

export interface TestPage {
  readonly page: Page;
  /** What the page reported since it was opened, without what was expected. */
  readonly reports: readonly string[];
  /**
   * Expects a report that matches. The result waits for the first one. To be called before the action, because the
   * browser may report after the page shows the consequence.
   */
  expectReport(pattern: RegExp): () => Promise<void>;
}

/** `names` resolve to this machine. */
export async function startBrowser(scope: Scope, names: readonly string[] = []): Promise<TestBrowser> {
  allowPrototypeAccess(scope);
  const home = temporaryDirectory(scope);
  const browser = await chromium.launch({
    executablePath: await findBrowser(),
    // WHY only this: the arguments that the package recommends switch web security off.
    args: [
      '--no-sandbox',
      '--lang=en-US',
      ...(names.length === 0 ? [] : [`--host-resolver-rules=${names.map((name) => `MAP ${name} 127.0.0.1`).join()}`]),
    ],
    env: {
      ...process.env,
      TMPDIR: home,
      HOME: home,
      LANG: 'en_US.UTF-8',
      FONTCONFIG_FILE: writeFontSettings(home),
    },
    timeout: TIMEOUT_MS,
  });
  closeBeforeRemoval(home, () => browser.close());
  return { open: (own, address, options) => openPage(own, browser, address, options) };
}

/** The fonts of the package, which name another directory as theirs. Without any font the browser ends. */
function writeFontSettings(home: string): string {
  const file = path.join(home, 'fonts.conf');
  const directories = `<dir>${path.join(UNPACKED, 'fonts')}</dir><cachedir>${home}</cachedir>`;
  const match = '<match target="pattern"><edit name="family" mode="append"><string>Open Sans</string></edit></match>';
  writeFileSync(file, `<?xml version="1.0"?><fontconfig>${directories}${match}</fontconfig>`);
  return file;
}

async function findBrowser(): Promise<string> {
  if (process.platform === 'linux' && process.arch === 'x64') return unpackBrowser();
  const found = INSTALLED.find((name) => existsSync(name));
  if (found === undefined) throw new Error('The console’s tests need a browser: install Google Chrome or Chromium.');
  return found;
}

async function unpackBrowser(): Promise<string> {
  const program = path.join(UNPACKED, 'chromium');
  if (existsSync(program)) return program;
  const directory = `${UNPACKED}.${process.pid}`;
  mkdirSync(directory, { recursive: true });
  const { TMPDIR: before } = process.env;
  try {
    process.env['TMPDIR'] = directory;
    const { default: packaged } = await import('@sparticuz/chromium');
    await packaged.executablePath();
    renameSync(directory, UNPACKED);
  } catch (error) {
    // Another process may have unpacked it first.
    if (!existsSync(program)) throw error;
  } finally {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    rmSync(directory, { recursive: true, force: true });
  }
  return program;
}

/** Runs in the page before its own scripts. Text, because the tests are checked without the types of a browser. */
const REPORT_VIOLATIONS = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
  reportViolation('violation of ' + violatedDirective + ': ' + blockedURI + ' ' + sample));`;
/** What may be missing: targets of a credential, and a session of the administrator's token. The browser reports it. */
const OPTIONAL_ROUTES = /\/api\/v1\/targets\b|\/auth\/session$/;

/** The browser driver sets prototypes by the accessor that the project's processes disable. */
function allowPrototypeAccess(scope: Scope): void {
  const before = Object.getOwnPropertyDescriptor(Object.prototype, '__proto__');
  if (before === undefined) return;
  Object.defineProperty(Object.prototype, '__proto__', {
    ...before,
    get(): unknown {
      return Object.getPrototypeOf(this);
    },
    set(prototype: object | null) {
      Object.setPrototypeOf(this, prototype);
    },
  });
  scope.after(() => void Object.defineProperty(Object.prototype, '__proto__', before));
}

async function openPage(
  scope: Scope,
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<TestPage> {
  const context = await browser.newContext({ locale: 'en-US', viewport: { width: 1280, height: 800 }, ...options });
  scope.after(() => context.close());
  const reports: string[] = [];
  const expected: { readonly pattern: RegExp; count: number }[] = [];
  const report = (text: string): void => {
    const match = expected.find(({ pattern }) => pattern.test(text));
    if (match === undefined) reports.push(text);
    else match.count += 1;
  };
  await context.exposeFunction('reportViolation', report);
  await context.addInitScript({ content: REPORT_VIOLATIONS });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  page.on('console', (message) => {
    const { url } = message.location();
    if (/status of 404/.test(message.text()) && OPTIONAL_ROUTES.test(url)) return;
    if (['error', 'warning'].includes(message.type())) report(`console: ${message.text()} ${url}`);
  });
  page.on('pageerror', (error) => report(`uncaught: ${error.message}`));
  scope.after(() => assert.deepEqual(reports, []));
  await page.goto(address);
  const expectReport = (pattern: RegExp) => {
    const own = { pattern, count: 0 };
    expected.push(own);
    return () =>
      until(
        () => own.count > 0,
        TIMEOUT_MS,
        () => `no report matches ${pattern}: ${reports.join('\n')}`,
      );
  };
  return { page, reports, expectReport };
}

/** Signs in with a token on the sign-in page, and waits for the navigation. */
export async function signIn({ page }: Pick<TestPage, 'page'>, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token);
  await page.keyboard.press('Enter');
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
}

/**
 * Waits until the expression is true in the page. WHY not `waitForFunction`: it evaluates text again within the page,
 * which the policy forbids.
 */
export function untilTrue(page: Page, expression: string): Promise<void> {
  const isTrue = async (): Promise<boolean> => (await page.evaluate(expression)) === true;
  return until(isTrue, TIMEOUT_MS, () => `it does not become true: ${expression}`);
}

/** Minimum height of a line of text. Text for screen readers only is one pixel high. */
const MIN_LINE_PX = 10;

/** Whether a person can see the text: it is a line high and completely in the window. */
export async function isSeen(text: Locator): Promise<boolean> {
  const { width: right = 0, height: bottom = 0 } = text.page().viewportSize() ?? {};
  const { x = -1, y = -1, width = 0, height = 0 } = (await text.boundingBox()) ?? {};
  return (
    height >= MIN_LINE_PX && width >= MIN_LINE_PX && x >= 0 && y >= 0 && x + width <= right && y + height <= bottom
  );
}

export async function untilSeen(text: Locator): Promise<void> {
  await text.waitFor();
  await until(
    () => isSeen(text),
    TIMEOUT_MS,
    () => 'the text is not in sight',
  );
}

/** The page's requests whose address matches. */
export function watchRequests(page: Page, pattern: RegExp) {
  const underWay = new Set<Request>();
  let started = 0;
  page.on('request', (request) => {
    if (!pattern.test(request.url())) return;
    started += 1;
    underWay.add(request);
  });
  for (const name of ['requestfinished', 'requestfailed'] as const) {
    page.on(name as 'requestfinished', (request) => void underWay.delete(request));
  }
  return {
    /** The number of requests since the watch began. */
    started: (): number => started,
    /** Waits until none is under way. */
    idle: (): Promise<void> =>
      until(
        () => underWay.size === 0,
        TIMEOUT_MS,
        () => `under way: ${[...underWay].map((request) => request.url()).join(' ')}`,
      ),
  };
}
