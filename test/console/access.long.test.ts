// The page Access in a real browser: the matrix with its reasons, the simulator and its fix, the editor of policies.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, untilTrue } from '../kit/browser.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';
import { addCredentials } from './many-credentials.ts';

const service = await startTestService({ after });
const { admin } = service;
const browser = await startBrowser({ after });
const at = (query: string): string => `${service.address}/console/access${query}`;
const ROWS = 100_000;
const LONG = Array.from({ length: 4 }, (_, index) => `${index}`.repeat(120)).join('/');

async function store(...paths: readonly string[]): Promise<void> {
  for (const path of paths) await admin.post('/api/v1/credentials', { path, value: `value of ${path}` });
}

interface ListedPolicy {
  readonly name: string;
  readonly resources: readonly string[];
  readonly actions: readonly string[];
}
const listPolicies = async (): Promise<readonly ListedPolicy[]> => (await admin.get('/api/v1/policies')).body.data;

test('an empty vault teaches the first agent, credential and policy', async (t) => {
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByRole('heading', { name: 'No agents yet' }).waitFor();
  const registration = page.getByRole('link', { name: 'Register a first agent' });
  assert.equal(await registration.getAttribute('href'), '/console/agents');
  assert.deepEqual(await violationsOf(page), []);
  await service.agent('ci-runner');
  await page.reload();
  await page.getByRole('heading', { name: 'No credentials yet' }).waitFor();
  const storing = page.getByRole('link', { name: 'Store a first credential' });
  assert.equal(await storing.getAttribute('href'), '/console/credentials');
  await page.getByRole('button', { name: 'Policies' }).click();
  await page.getByRole('heading', { name: /^No policies yet/ }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('a cell has its reasons on hover and focus, moves by arrows, and opens the simulator', async (t) => {
  await store('prod/db', 'prod/api', LONG);
  await service.agent('deployer', { 'prod/*': ['retrieve', 'list'] });
  const opened = await browser.open(t, at(''));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const grid = page.getByRole('table', { name: 'What each agent may do' });
  const cell = grid.getByRole('button', { name: 'deployer on prod/db: retrieve, list allowed' });
  await cell.hover();
  const reasons = page.getByRole('tooltip');
  await reasons.getByText(/^Policy .* grants retrieve on prod\/\*/).waitFor();
  assert.match(await reasons.innerText(), /No policy grants this agent the action\./);
  assert.deepEqual(await violationsOf(page), []);
  await grid.getByRole('button', { name: /^ci-runner on 0000/ }).focus();
  await reasons.getByText('No policy names this agent.').first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await untilTrue(page, `document.activeElement.textContent.startsWith('deployer on prod/db')`);
  await page.keyboard.press('Escape');
  await reasons.waitFor({ state: 'detached' });
  await page.keyboard.press('s');
  await page.getByRole('region', { name: 'Decision' }).getByText('denied').waitFor();
  await page.waitForURL(/for=deployer&path=prod%2Fdb&action=store/);
  await page.getByLabel('Action').selectOption('use');
  await page.getByRole('button', { name: 'Simulate' }).click();
  await page.getByText('the credential has no targets', { exact: true }).waitFor();
  await page.getByLabel('Path').fill('prod/absent');
  await page.getByRole('button', { name: 'Simulate' }).click();
  await page.getByText('no credential at this path', { exact: true }).waitFor();
});

test('a denial is fixed by one confirmed change whose difference is shown before', async (t) => {
  await store('fix/a', 'fix/b');
  await service.agent('fixer', { 'fix/a': ['retrieve'] });
  const opened = await browser.open(t, at('?view=simulator&for=fixer&action=retrieve&path=fix/b'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  const fix = page.getByRole('region', { name: 'How to allow it' });
  await fix.waitFor();
  assert.match(await fix.getByRole('table').innerText(), /New policy\s+fixer-retrieve[\s\S]*\+ agent:fixer/);
  assert.deepEqual(await violationsOf(page), []);
  const before = await listPolicies();
  await fix.getByRole('button', { name: 'Apply this change' }).click();
  await page.getByRole('region', { name: 'Decision' }).getByText('allowed').waitFor();
  const policies = await listPolicies();
  assert.equal(policies.length, before.length + 1);
  const made = policies.find(({ name }) => name === 'fixer-retrieve');
  assert.deepEqual([made?.resources, made?.actions], [['fix/b'], ['retrieve']]);
});

test('a use that no target has is explained, and fixed by a target; a policy may demand an approval', async (t) => {
  await store('apis/key');
  const target = { origin: 'https://api.example.com', paths: ['/v1/*'], methods: ['GET'] };
  await admin.put('/api/v1/targets/apis/key', { targets: [target], placement: { kind: 'bearer' } });
  await service.agent('caller');
  const policy = { name: 'caller-uses', principal: 'agent:caller', resources: ['apis/*'], actions: ['use'] };
  await admin.post('/api/v1/policies', {
    ...policy,
    approval: { for: 'use', each: 'host', scope: 'session', quorum: 2 },
  });
  const opened = await browser.open(t, at('?view=simulator&for=caller&action=use&path=apis/key'));
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByText(/^2 operators must approve each host/).waitFor();
  await page.getByLabel('Method').fill('POST');
  await page.getByLabel('URL').fill('https://api.example.com/v1/jobs?key=confidential');
  await page.keyboard.press('Enter');
  const fix = page.getByRole('region', { name: 'How to allow it' });
  await fix.getByText('+ https://api.example.com /v1/jobs (POST)').waitFor();
  await page.getByRole('region', { name: 'Decision' }).getByText('the targets of the credential').waitFor();
  assert.equal(page.url().includes('confidential'), false);
  await fix.getByRole('button', { name: 'Apply this change' }).click();
  await page.getByRole('region', { name: 'Decision' }).getByText('allowed').waitFor();
  const { body } = await admin.get('/api/v1/targets/apis/key');
  assert.deepEqual(body.data.targets[1].methods, ['POST']);
});

test('a viewer sees the decision and the fix, and cannot apply it', async (t) => {
  const viewer = await addOperator(service, 'vera', ['viewer']);
  const opened = await browser.open(t, at('?view=simulator&for=ci-runner&action=list&path=prod/db'));
  const { page } = opened;
  await signIn(opened, viewer.token);
  const apply = page.getByRole('button', { name: 'Apply this change' });
  await apply.waitFor();
  assert.equal(await apply.isDisabled(), true);
  await page.getByRole('button', { name: 'Policies' }).click();
  assert.equal(await page.getByRole('button', { name: 'New policy' }).isDisabled(), true);
});

test('the matrix of 100,000 paths and many agents has pages in the URL, in the dark theme and at 360 pixels', async (t) => {
  await addCredentials(service.dataDir, ROWS);
  for (let index = 0; index < 11; index++) await admin.post('/api/v1/agents', { name: `zone-${index}` });
  const opened = await browser.open(t, at('?agent=zone-&prefix=many/'), { colorScheme: 'dark' });
  const { page } = opened;
  await signIn(opened, service.adminToken);
  await page.getByText('paths 1–50 of 100,000').waitFor();
  await page.getByText('agents 1–10 of 11').waitFor();
  await page.getByRole('button', { name: 'Next agents' }).click();
  await page.getByText('agents 11–11 of 11').waitFor();
  await page.getByRole('button', { name: 'Next paths' }).click();
  await page.getByText('paths 51–100 of 100,000').waitFor();
  await page.waitForURL(/agents_from=10&paths_from=50/);
  await page.goto(at('?prefix=many&paths_from=99950'));
  await page.getByText('paths 99,951–100,000 of 100,000').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Next paths' }).isDisabled(), true);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(await violationsOf(page), []);
});
