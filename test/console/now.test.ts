// The page Now in a real browser: the steps of an empty vault, what happens within a second, and where to continue.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';

const service = await startTestService({ after });
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/now${query}`;
const HOSTILE = '<img src=x onerror=alert(1)>\u202e';

test('an empty vault teaches the first steps, and an agent’s first retrieval ends them', async (t) => {
  const opened = await browser.open(t, `${service.address}/console/`);
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  const steps = page.getByRole('region', { name: 'First steps' });
  await steps.getByText('leasehold put openai/key --service openai').waitFor();
  await steps.getByRole('link', { name: 'Open Credentials' }).waitFor();
  await page.getByText('No request waits for a person.').waitFor();
  await page.getByText('Nothing was denied.').waitFor();
  await page.getByText('No agent holds a credential.').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await service.admin.post('/api/v1/credentials', { path: 'prod/db', value: 'secret-value', description: HOSTILE });
  await steps.getByRole('heading', { name: 'Store a credential done' }).waitFor();
  const agent = await service.agent('deploy-bot');
  const simulator = '/access?view=simulator&for=deploy-bot&action=use&path=prod%2Fdb';
  await steps.locator(`a[href$="${simulator}"]`).waitFor();
  const policy = { name: 'first', principal: 'agent:deploy-bot', resources: ['prod/*'], actions: ['retrieve'] };
  await service.admin.post('/api/v1/policies', policy);
  await agent.get('/api/v1/credentials/prod/db');
  await steps.waitFor({ state: 'detached' });
  const happened = page.getByRole('region', { name: 'Uses and retrievals' });
  assert.match(await happened.getByRole('listitem').first().innerText(), /deploy-bot retrieved prod\/db/);
  await page.getByRole('heading', { name: 'Active leases (1)' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('a browser whose language is not a valid tag gets the numbers in words', async (t) => {
  const opened = await browser.open(t, `${service.address}/console/`);
  const { page } = opened;
  await page.addInitScript(`Object.defineProperty(navigator, 'language', { get: () => 'en-US@posix' })`);
  await page.reload();
  await signIn(opened, service.adminToken);
  await page.getByText(/^Decisions of the last hour: in the last hour .* cannot draw the plot\.$/).waitFor();
  await page.getByRole('region', { name: 'Denials' }).waitFor();
});

test('a denial appears with its reason, and leads to the simulator with the same request', async (t) => {
  const agent = await service.agent('curious-bot');
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const denials = page.getByRole('region', { name: 'Denials' });
  await denials.waitFor();
  await agent.get('/api/v1/credentials/prod/db');
  const row = denials.getByRole('listitem').filter({ hasText: 'curious-bot' });
  await row.waitFor();
  assert.match(await row.innerText(), /no policy/i);
  await row.getByRole('link', { name: 'Explain why curious-bot was denied prod/db' }).click();
  const { pathname, searchParams } = new URL(page.url());
  assert.deepEqual(
    [pathname, ...['for', 'action', 'path'].map((name) => searchParams.get(name))],
    ['/console/access', 'curious-bot', 'retrieve', 'prod/db'],
  );
  await page.getByRole('region', { name: 'Decision' }).getByText('denied').waitFor();
});

test('a denied use leads to the simulator with the scheme and port of its target', async (t) => {
  const { admin } = service;
  await admin.post('/api/v1/credentials', { path: 'pay/local', value: 'secret-value' });
  const target = {
    origin: 'http://127.0.0.1:9912',
    paths: ['/v1/*'],
    methods: ['GET'],
    allow_networks: ['127.0.0.0/8'],
  };
  await admin.put('/api/v1/targets/pay/local', { targets: [target], placement: { kind: 'bearer' } });
  await admin.post('/api/v1/policies', { name: 'pay', principal: 'agent:*', resources: ['pay/*'], actions: ['use'] });
  const agent = await service.agent('pay-bot');
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await agent.post('/api/v1/use', { path: 'pay/local', method: 'GET', url: 'http://127.0.0.1:9912/v2/orders' });
  await page.getByRole('link', { name: 'Explain why pay-bot was denied pay/local' }).click();
  const decision = page.getByRole('region', { name: 'Decision' });
  await decision.getByText('pay/local for GET http://127.0.0.1:9912/v2/orders').waitFor();
  assert.equal(await page.getByLabel('URL (optional)').inputValue(), 'http://127.0.0.1:9912/v2/orders');
});

test('a hidden page reads nothing', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('region', { name: 'Denials' }).waitFor();
  let reads = 0;
  page.on('request', (request) => {
    if (request.url().includes('/api/')) reads += 1;
  });
  const setVisibility = (state: string): Promise<unknown> =>
    page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
  await page.waitForRequest(/audit\?after=/);
  await setVisibility('hidden');
  await page.waitForTimeout(200);
  reads = 0;
  await page.waitForTimeout(1500);
  assert.equal(reads, 0);
  await setVisibility('visible');
  await page.waitForRequest(/audit\?after=/);
});
