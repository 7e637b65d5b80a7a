/**
 * A real browser for tests: one for each test file, with a separate context for each page. On Linux x64 it comes from
 * the packages of the project; elsewhere an installed Chrome or Chromium is used. A violation of the content security
 * policy, an error on the page's console, or an uncaught error fails the test.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';
import { type Scope, temporaryDirectory } from './directory.ts';
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
  /** What the page reported since it was opened. A test that expects a report removes it. */
  readonly reports: string[];
}

export async function startBrowser(scope: Scope): Promise<TestBrowser> {
  allowPrototypeAccess(scope);
  const home = temporaryDirectory(scope);
  const browser = await chromium.launch({
    executablePath: await findBrowser(),
    // WHY only this: the arguments that the package recommends switch web security off.
    args: ['--no-sandbox', '--lang=en-US'],
    env: {
      ...process.env,
      TMPDIR: home,
      HOME: home,
      LANG: 'en_US.UTF-8',
      FONTCONFIG_FILE: writeFontSettings(home),
    },
    timeout: TIMEOUT_MS,
  });
  scope.after(() => browser.close());
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
  await context.exposeFunction('reportViolation', (text: string) => void reports.push(text));
  await context.addInitScript({ content: REPORT_VIOLATIONS });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  page.on('console', (message) => {
    const { url } = message.location();
    if (/status of 404/.test(message.text()) && OPTIONAL_ROUTES.test(url)) return;
    if (['error', 'warning'].includes(message.type())) reports.push(`console: ${message.text()} ${url}`);
  });
  page.on('pageerror', (error) => void reports.push(`uncaught: ${error.message}`));
  scope.after(() => assert.deepEqual(reports, []));
  await page.goto(address);
  return { page, reports };
}

/** Signs in with a token on the sign-in page, and waits for the navigation. */
export async function signIn({ page }: TestPage, token: string): Promise<void> {
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

/** Of a line of text. What only screen readers read is one pixel high. */
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
