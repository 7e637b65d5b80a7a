// The page Credentials in a real browser: list, directories, details, changes, and a value that is shown and then gone.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { signIn, startBrowser } from '../kit/browser.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';
import { addCredentials } from './many-credentials.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/credentials${query}`;
const ROWS = 100_000;
const HOSTILE = '<img src=x onerror=alert(1)> \u202ereversed';

const viewer = await addOperator(service, 'vera', ['viewer']);

/** Everything that JavaScript has, after a collection. */
async function heapOf(page: Page): Promise<string> {
  const session = await page.context().newCDPSession(page);
  const chunks: string[] = [];
  session.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => void chunks.push(chunk));
  await session.send('HeapProfiler.enable');
  await session.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  await session.detach();
  return chunks.join('');
}

/** Where a page could have kept a value. */
async function keptBy(page: Page): Promise<Readonly<Record<string, string>>> {
  const kept = await page.evaluate<Record<string, string>>(`({
    storage: JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    address: location.href + JSON.stringify(history.state),
    fields: JSON.stringify([...document.querySelectorAll('input, textarea')].map(({ value }) => value)),
  })`);
  return { ...kept, elements: await page.content(), heap: await heapOf(page) };
}

const placesWith = (kept: Readonly<Record<string, string>>, text: string): string[] =>
  Object.entries(kept).flatMap(([place, content]) => (content.includes(text) ? [place] : []));

test('an empty vault teaches the first step, and a value is stored by the keyboard and is then nowhere', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  const logged: string[] = [];
  page.on('console', (message) => void logged.push(message.text()));
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'No credentials yet' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByRole('button', { name: 'Store a credential' }).focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Store a credential' });
  await dialog.getByLabel('Path').fill('first//path');
  await dialog.getByText(/^path: must not/).waitFor();
  await dialog.getByLabel('Path').fill('first/path');
  await dialog.getByText('A new credential will be created at this path.').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await dialog.getByRole('textbox', { name: 'Value' }).focus();
  const value = `typed-${crypto.randomUUID()}`;
  await page.keyboard.insertText(value);
  await dialog.getByText('1 line, 42 bytes', { exact: true }).waitFor();
  await page.keyboard.press('Control+Enter');
  await page.getByRole('complementary', { name: 'first/path' }).getByText('The credential has no targets').waitFor();
  const { body } = await admin.get('/api/v1/credentials/first/path');
  assert.equal(body.data.value, value);
  assert.deepEqual(placesWith({ ...(await keptBy(page)), log: logged.join('\n') }, value), []);
  await page.getByRole('button', { name: 'Store a credential' }).click();
  await dialog.getByLabel('Path').fill('first/openai');
  await dialog.getByLabel(/^Service/).selectOption({ label: 'OpenAI' });
  await dialog.getByRole('textbox', { name: 'Value' }).fill('a value');
  await dialog.getByText('A new credential will be created at this path.').waitFor();
  await page.keyboard.press('Control+Enter');
  const stored = page.getByRole('complementary', { name: 'first/openai' });
  await stored.getByText('https://api.openai.com', { exact: true }).waitFor();
});

test('a revealed value is recorded, and 1 s after hiding it is in no element, storage, URL, log or heap', async (t) => {
  const value = `shown-${crypto.randomUUID()}`;
  await admin.post('/api/v1/credentials', { path: 'reveal/it', value });
  const opened = await browser.open(t, at('?path=reveal/it'));
  const { page } = opened;
  const logged: string[] = [];
  page.on('console', (message) => void logged.push(message.text()));
  await signIn(opened, service.adminToken);
  const section = page.getByRole('region', { name: 'Value' });
  await section.getByText(/recorded under your name and issues a lease/).waitFor();
  // The search finds what is there.
  const planted = await page.evaluate<string>('(window.planted = crypto.randomUUID())');
  assert.deepEqual(placesWith({ heap: await heapOf(page) }, planted), ['heap']);
  await page.evaluate('delete window.planted');
  await section.getByRole('button', { name: 'Reveal' }).click();
  await page.getByRole('button', { name: 'Reveal for 30 seconds' }).focus();
  await page.keyboard.press('Enter');
  await section
    .getByRole('timer')
    .filter({ hasText: /^Hidden in (?:30|2\d) s$/ })
    .waitFor();
  assert.equal((await page.content()).includes(value), true);
  await page.getByText('rotate: the current version was seen').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  const { body } = await admin.get('/api/v1/audit?event_type=credential.retrieve&resource=reveal/it');
  assert.deepEqual([body.meta.total, body.data[0].result], [1, 'allowed']);
  const leases = (await admin.get('/api/v1/leases?path=reveal/it')).body.data;
  assert.equal(Date.parse(leases[0].expires_at) - Date.parse(leases[0].issued_at), 30_000);
  await page.keyboard.press('Enter');
  await section.getByRole('button', { name: 'Reveal' }).waitFor();
  // WHY: V8 keeps the last text that a regular expression matched, and Playwright matches the texts of the page. A name
  // with a blank takes the place of the value there.
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  await page.waitForTimeout(1000);
  assert.deepEqual(placesWith({ ...(await keptBy(page)), log: logged.join('\n') }, value), []);
});

test('a value is copied by a click only, recorded under the operator, and hidden after 30 s without a click', async (t) => {
  const value = `timed-${crypto.randomUUID()}`;
  await admin.post('/api/v1/credentials', { path: 'reveal/timed', value });
  const editor = await addOperator(service, 'eda', ['editor'], { 'reveal/*': ['retrieve'] });
  const opened = await browser.open(t, at('?path=reveal/timed'), {
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const { page } = opened;
  await signIn(opened, editor.token);
  const section = page.getByRole('region', { name: 'Value' });
  await section.getByRole('button', { name: 'Reveal' }).waitFor();
  await page.clock.install();
  await section.getByRole('button', { name: 'Reveal' }).click();
  await page.getByRole('button', { name: 'Reveal for 30 seconds' }).click();
  await section.getByRole('timer').waitFor();
  const { body } = await admin.get('/api/v1/audit?event_type=credential.retrieve&resource=reveal/timed');
  assert.deepEqual([body.meta.total, body.data[0].agent_name], [1, 'operator:eda']);
  assert.notEqual(await page.evaluate('navigator.clipboard.readText()'), value);
  await section.getByRole('button', { name: 'Copy the value' }).click();
  await page.getByText('Copied the value.').waitFor();
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), value);
  await page.clock.fastForward(15_000);
  assert.equal((await page.content()).includes(value), true);
  await page.clock.fastForward(16_000);
  await section.getByRole('button', { name: 'Reveal' }).waitFor();
  assert.equal((await page.content()).includes(value), false);
});

test('a value that a policy guards is shown once another operator has approved the retrieval', async (t) => {
  const value = `guarded-${crypto.randomUUID()}`;
  await admin.post('/api/v1/credentials', { path: 'guarded/it', value });
  const editor = await addOperator(service, 'edwin', ['editor']);
  const approver = await addOperator(service, 'april', ['approver']);
  const approval = { for: 'retrieve', each: 'request', scope: 'once' };
  const policy = { principal: 'operator:edwin', resources: ['guarded/*'], actions: ['retrieve'], approval };
  assert.equal((await admin.post('/api/v1/policies', { name: 'guarded', ...policy })).status, 201);
  const opened = await browser.open(t, at('?path=guarded/it'));
  const { page } = opened;
  await signIn(opened, editor.token);
  await page.getByRole('button', { name: 'Reveal' }).click();
  await page.getByRole('button', { name: 'Reveal for 30 seconds' }).click();
  const readWaiting = async () => (await approver.get('/api/v1/approvals?status=pending')).body.data[0];
  let waiting = await readWaiting();
  while (waiting === undefined) {
    await sleep(10);
    waiting = await readWaiting();
  }
  assert.equal((await page.content()).includes(value), false);
  const answer = await approver.post(`/api/v1/approvals/${waiting.approval_id}/approve`, { nonce: waiting.nonce });
  assert.equal(answer.status, 200, answer.text);
  await page.getByRole('region', { name: 'Value' }).getByText(value, { exact: true }).waitFor();
});

test('a value that arrives after the dialog was cancelled is not shown', async (t) => {
  const value = `late-${crypto.randomUUID()}`;
  await admin.post('/api/v1/credentials', { path: 'reveal/late', value });
  const opened = await browser.open(t, at('?path=reveal/late'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
  await page.route(/credentials\/reveal\/late\?ttl=/, async (route) => {
    await held;
    await route.continue().catch(() => undefined);
    end();
  });
  const asked = page.waitForRequest(/credentials\/reveal\/late\?ttl=/);
  await page.getByRole('button', { name: 'Reveal…' }).click();
  await page.getByRole('button', { name: 'Reveal for 30 seconds' }).click();
  await asked;
  await page.getByRole('button', { name: 'Cancel' }).click();
  release();
  await isOver;
  await page.waitForTimeout(300);
  assert.equal((await page.content()).includes(value), false);
  await page.getByRole('button', { name: 'Reveal…' }).waitFor();
});

test('directories lead to a credential, the search finds every level, and hostile text stays text', async (t) => {
  const long = Array.from({ length: 4 }, (_, index) => `${index}`.repeat(120)).join('/');
  for (const name of ['tree/a/one', 'tree/a/two', 'tree/b', long]) {
    await admin.post('/api/v1/credentials', { path: name, value: 'a value', description: HOSTILE });
  }
  const opened = await browser.open(t, at(''), { colorScheme: 'dark' });
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('button', { name: 'Browse by directory' }).click();
  for (const name of ['tree/', 'tree/a/', 'tree/a/two'])
    await page.getByRole('grid').getByText(name, { exact: true }).click();
  const panel = page.getByRole('complementary', { name: 'tree/a/two' });
  await panel.getByText(HOSTILE).waitFor();
  await page.waitForURL(/path=tree%2Fa%2Ftwo/);
  assert.equal(await page.locator('img, script:not([src])').count(), 0);
  assert.deepEqual(await violationsOf(page), []);
  await page.keyboard.press('Escape');
  await page.getByLabel('Search all paths').fill('A/ONE');
  await page.keyboard.press('Enter');
  await page.getByText('1 credential found').waitFor();
  const found = page.getByRole('grid');
  await found.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'tree/a/one' }).waitFor();
  await page.goto(at(`?path=${encodeURIComponent(long)}`));
  await page.getByRole('complementary').getByText(HOSTILE).waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(await violationsOf(page), []);
});

test('details show targets, exposure and access; a new version comes from a file; deletion names what ends', async (t) => {
  await admin.post('/api/v1/credentials', { path: 'full/key', value: 'a first value' });
  const reader = await service.agent('reader', { 'full/*': ['retrieve'] });
  await reader.get('/api/v1/credentials/full/key');
  const opened = await browser.open(t, at('?path=full/key'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const panel = page.getByRole('complementary', { name: 'full/key' });
  await panel.getByText('rotate: the current version was seen').waitFor();
  await panel.getByRole('row', { name: /^reader seen, lease active 1/ }).waitFor();
  assert.match(
    (await panel.getByRole('link', { name: 'Show access' }).getAttribute('href')) ?? '',
    /prefix=full%2Fkey$/,
  );
  await panel.getByRole('button', { name: 'Set targets' }).click();
  const targets = page.getByRole('dialog', { name: 'Targets of full/key' });
  await targets.getByText(/^targets\[0\]\.origin: must be an origin/).waitFor();
  await targets.getByLabel('Service').selectOption({ label: 'OpenAI' });
  assert.deepEqual(await violationsOf(page), []);
  await targets.getByRole('button', { name: 'Save the targets' }).click();
  await panel.getByText('https://api.openai.com', { exact: true }).waitFor();
  const file = path.join(temporaryDirectory(t), 'value.txt');
  const value = `file-${crypto.randomUUID()}`;
  writeFileSync(file, value);
  await panel.getByRole('button', { name: 'Store a new version' }).click();
  const dialog = page.getByRole('dialog', { name: 'New version of full/key' });
  await dialog.getByText('the value becomes version 2').waitFor();
  await dialog.getByLabel('the content of a file').check();
  await dialog.getByLabel('File (stored byte for byte').setInputFiles(file);
  await dialog.getByRole('button', { name: 'Store the new version' }).click();
  await panel.getByText('replaced: withdraw it where it was issued').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  assert.equal((await reader.get('/api/v1/credentials/full/key')).body.data.value, value);
  await panel.getByRole('button', { name: 'Delete…', exact: true }).click();
  const confirm = page.getByRole('dialog', { name: 'Delete the credential?' });
  await confirm.getByText('This destroys 2 versions and ends 2 active leases.').waitFor();
  assert.equal(await confirm.getByRole('button', { name: 'Delete the credential' }).isDisabled(), true);
  await confirm.getByRole('textbox').fill('full/key');
  await page.keyboard.press('Enter');
  await panel.waitFor({ state: 'detached' });
  assert.equal((await admin.get('/api/v1/credentials/full/key')).status, 404);
});

test('a viewer sees metadata, and is not offered values or changes', async (t) => {
  await admin.post('/api/v1/credentials', { path: 'viewed/key', value: 'a value' });
  const opened = await browser.open(t, at('?path=viewed/key'));
  const { page } = opened;
  await signIn(opened, await viewer.enter());
  const panel = page.getByRole('complementary', { name: 'viewed/key' });
  await panel.getByText('Revealing values requires the editor role').waitFor();
  assert.equal(await panel.getByRole('button', { name: 'Reveal' }).isDisabled(), true);
  assert.equal(await page.getByRole('button', { name: 'Store a credential' }).isDisabled(), true);
  assert.equal(await panel.getByRole('button', { name: /Delete|Edit|Set targets|new version/ }).count(), 0);
  assert.deepEqual(await violationsOf(page), []);
});

test('100,000 credentials: the list draws only those in sight, and a directory is read alone', async (t) => {
  await addCredentials(service.dataDir, ROWS);
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByText(/^100,0\d\d credentials$/).waitFor();
  const grid = page.getByRole('grid');
  await grid.focus();
  await page.keyboard.press('End');
  await grid.getByText('viewed/key').waitFor();
  assert.ok((await grid.getByRole('row').count()) < 80);
  await page.getByRole('button', { name: 'Browse by directory' }).click();
  await page.getByRole('grid', { name: 'Names below /' }).getByText('many/', { exact: true }).click();
  await page.getByRole('grid', { name: 'Names below many/' }).waitFor();
  await page.waitForURL(/prefix=many/);
  await page.getByText('many/: 1,000 names').waitFor();
  assert.deepEqual(await violationsOf(page), []);
});
