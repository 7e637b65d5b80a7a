// The page Now in a real browser: the steps of an empty vault, what happens within a second, and where to continue.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, untilTrue, watchRequests } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
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
  await page.getByText('No pending approvals.').waitFor();
  await page.getByText('No denials.').waitFor();
  await page.getByText('No active leases.').waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await service.admin.post('/api/v1/credentials', { path: 'prod/db', value: 'secret-value', description: HOSTILE });
  await steps.getByRole('heading', { name: 'Store a credential done' }).waitFor();
  const agent = await service.agent('deploy-bot');
  const editor = await addOperator(service, 'eda', ['editor']);
  const simulator = '/access?view=simulator&for=deploy-bot&action=use&path=prod%2Fdb';
  await steps.locator(`a[href$="${simulator}"]`).waitFor();
  const policy = { name: 'first', principal: 'agent:deploy-bot', resources: ['prod/*'], actions: ['retrieve'] };
  await service.admin.post('/api/v1/policies', policy);
  const own = { ...policy, name: 'own', principal: 'operator:eda' };
  await service.admin.post('/api/v1/policies', own);
  await editor.get('/api/v1/credentials/prod/db');
  const happened = page.getByRole('region', { name: 'Brokered requests and retrievals' });
  await happened.getByText('operator:eda').waitFor();
  await steps.getByText('leasehold --agent deploy-bot use openai/key').waitFor();
  await agent.get('/api/v1/credentials/prod/db');
  await steps.waitFor({ state: 'detached' });
  assert.match(await happened.getByRole('listitem').first().innerText(), /deploy-bot retrieved prod\/db/);
  await page.getByRole('heading', { name: 'Active leases (2)' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('retrievals of operators do not bring the first steps back', async (t) => {
  for (let times = 0; times < 9; times++) await service.admin.get('/api/v1/credentials/prod/db');
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const hasRead = `performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/policies?limit=1'))`;
  await untilTrue(page, hasRead);
  // When the page reads again, it already shows the result of the previous read.
  await page.waitForRequest(/audit\?after=/);
  await page.getByRole('heading', { name: 'Active leases (11)' }).waitFor();
  assert.equal(await page.getByRole('region', { name: 'First steps' }).count(), 0);
  assert.deepEqual(await violationsOf(page), []);
});

test('the result of a use is at the end of its line in a wide window', async (t) => {
  const opened = await browser.open(t, at(''), { viewport: { width: 1920, height: 1000 } });
  const { page } = opened;
  const [entry] = (await service.admin.get('/api/v1/audit?event_type=credential.retrieve&limit=1')).body.data;
  const request = { method: 'GET', host: 'api.openai.com', target_path: '/v1/chat/completions', status: 200 };
  const use = { ...entry, event_type: 'credential.use_result', agent_name: 'research-bot', ...request };
  const meta = { limit: 16, offset: 0, total: 1 };
  await page.route(/audit\?.*event_type=credential\.use_result/, (route) =>
    route.fulfill({ json: { data: [use], meta } }),
  );
  await signIn(opened, service.adminToken);
  const line = page.getByRole('listitem').filter({ hasText: 'research-bot' });
  const [badge, time] = [line.getByText('status 200'), line.locator('time')];
  await badge.waitFor();
  const [right, left] = [await badge.boundingBox(), await time.boundingBox()];
  assert.ok(right !== null && left !== null && right.y < left.y + left.height && right.x > left.x + left.width);
  assert.deepEqual(await violationsOf(page), []);
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
  await page.waitForURL(/\/access\?.*path=/);
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
  const reads = watchRequests(page, /\/api\//);
  const setVisibility = (state: string): Promise<unknown> =>
    page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
  await page.waitForRequest(/audit\?after=/);
  await setVisibility('hidden');
  await reads.idle();
  const before = reads.started();
  await page.waitForTimeout(1500);
  assert.equal(reads.started(), before);
  await setVisibility('visible');
  await page.waitForRequest(/audit\?after=/);
});
