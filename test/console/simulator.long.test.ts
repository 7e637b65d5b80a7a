// The simulator in a real browser: its verdict equals the server's, and its fix makes exactly the shown change.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/access${query}`;

async function store(path: string): Promise<void> {
  await admin.post('/api/v1/credentials', { path, value: `value of ${path}` });
}

test('what a policy grants is still denied without targets, a credential or an agent, and says what is missing', async (t) => {
  await store('bare/key');
  await service.agent('bare-user', { 'bare/*': ['use', 'retrieve'] });
  const opened = await browser.open(t, at('?view=simulator&for=bare-user&action=use&path=bare/key'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const decision = page.getByRole('region', { name: 'Decision' });
  const badge = decision.locator('.badge');
  const says = (text: string) => badge.getByText(text, { exact: true }).waitFor();
  await decision.getByText('the credential has no targets', { exact: true }).waitFor();
  await says('denied');
  assert.deepEqual(await violationsOf(page), []);
  await page.getByLabel('Path').fill('bare/absent');
  await page.getByRole('button', { name: 'Simulate' }).click();
  await decision.getByText('no credential at this path', { exact: true }).waitFor();
  await says('denied');
  await page.goto(at('?view=simulator&for=bare-user&action=use&path=bare/key'));
  await page.getByRole('link', { name: 'set them with the placement of its value' }).click();
  await page.getByRole('complementary', { name: 'bare/key' }).waitFor();
  // A pattern of principals reaches names that are not registered.
  const pattern = { name: 'every-bare', principal: 'agent:bare-*', resources: ['bare/*'], actions: ['retrieve'] };
  assert.equal((await admin.post('/api/v1/policies', pattern)).status, 201);
  for (const [path, name, link] of [
    ['bare/key', 'bare-nobody', 'Register the agent'],
    ['absent/db', 'bare-nobody', 'Register the agent'],
    ['absent/db', 'operator:nobody', 'Add the operator'],
  ] as const) {
    await page.goto(at(`?view=simulator&for=${name}&action=retrieve&path=${path}`));
    await decision.getByText(`${name} is not registered`, { exact: true }).waitFor();
    await says('denied');
    await page.getByRole('link', { name: link }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Apply this change' }).count(), 0);
  }
  await page.goto(at('?view=simulator&for=bare-user&action=retrieve&path=bare/key'));
  await says('allowed');
  assert.deepEqual(await violationsOf(page), []);
});

test('one more target leaves the service of a credential as it is, and says what ends', async (t) => {
  await store('catalogue/key');
  await admin.put('/api/v1/targets/catalogue/key', { service: 'openai' });
  const before = (await admin.get('/api/v1/targets/catalogue/key')).body.data;
  assert.equal(before.service, 'openai');
  await service.agent('extender', { 'catalogue/*': ['use'] });
  const opened = await browser.open(
    t,
    at('?view=simulator&for=extender&action=use&path=catalogue/key&method=GET&url=https://api.example.com/v1/jobs'),
  );
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const fix = page.getByRole('region', { name: 'How to allow it' });
  await fix.getByText('Saving ends the use leases of this credential').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await fix.getByRole('button', { name: 'Apply this change' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Decision' }).locator('.badge').getByText('allowed').waitFor();
  // The button is gone: the focus is on what it changed.
  await untilTrue(page, `/^allowed extender use/.test(document.activeElement.textContent)`);
  const { body } = await admin.get('/api/v1/targets/catalogue/key');
  const { service: kept, targets, placement } = body.data;
  assert.deepEqual([kept, targets.slice(0, -1), placement], ['openai', before.targets, before.placement]);
  assert.equal(targets.at(-1).origin, 'https://api.example.com');
  assert.deepEqual(await violationsOf(page), []);
});
