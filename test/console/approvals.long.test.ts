// The approvals page in a real browser: the inbox, answers by button and by key, history, grants, and hostile requests.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { signIn, startBrowser, type TestPage, untilSeen, watchRequests } from '../kit/browser.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { violationsOf } from './accessibility.ts';
import { answer, card, setUpApprovals } from './approval-requests.ts';

const service = await startTestService({ after }, [], undefined, undefined, { approvalHoldMs: 50 });
const browser = await startBrowser({ after });
const { alice, agentWith, call } = await setUpApprovals({ after }, service);
const at = (path: string): string => `${service.address}/console${path}`;

/** Stops the clock by which cards measure what was shown for half a second. The result advances it past that time. */
async function stopClock({ page }: TestPage): Promise<() => Promise<void>> {
  await page.evaluate(`{
    let time = performance.now();
    performance.now = () => time;
    window.passTime = (milliseconds) => void (time += milliseconds);
  }`);
  return () => page.evaluate('passTime(501)');
}

test('without a request the page teaches how to demand an approval', async (t) => {
  const opened = await browser.open(t, at('/approvals'));
  const { page } = opened;
  await signIn(opened, alice.token);
  await page.getByRole('heading', { name: 'No pending approvals' }).waitFor();
  await page.getByText(/^leasehold policy put .*--approval use/).waitFor();
  await page.getByRole('link', { name: 'Active grants' }).click();
  await page.getByRole('heading', { name: 'No active grants' }).waitFor();
  await page.getByRole('link', { name: 'History' }).click();
  await page.getByRole('heading', { name: 'No approval requests' }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
});

test('requests of one agent to one endpoint are one card, and one denial is for all of them', async (t) => {
  const agent = await agentWith('batch', { for: 'use' });
  await Promise.all([1, 2, 3].map((number) => call(agent, '/v1/batch', `{"n":${number}}`, `report ${number}`)));
  const opened = await browser.open(t, at('/approvals'));
  await signIn(opened, alice.token);
  const shown = card(opened, /\/v1\/batch$/);
  await shown.getByText('3 requests', { exact: true }).waitFor();
  await shown.getByLabel('Body of the request').nth(2).waitFor();
  assert.equal(await shown.getByLabel('Body of the request').count(), 3);
  for (const number of [1, 2, 3]) await shown.getByText(`report ${number}`, { exact: true }).waitFor();
  const { page } = opened;
  for (const [filter, cards] of [
    ['another', 0],
    ['batch', 1],
  ] as const) {
    await page.getByLabel('Agent', { exact: true }).fill(filter);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/approvals?agent=${filter}`);
    await page.locator('.count', { hasText: cards === 0 ? '0 pending requests' : '3 pending requests' }).waitFor();
    assert.equal(await page.locator('article').count(), cards);
  }
  await shown.getByLabel(/^Reason/).fill('not on Fridays');
  await answer(opened, shown.getByRole('button', { name: 'Deny all 3' }));
  await shown.waitFor({ state: 'detached' });
  const answers = await Promise.all(
    [1, 2, 3].map((number) => call(agent, '/v1/batch', `{"n":${number}}`, `report ${number}`)),
  );
  assert.deepEqual(
    answers.map(({ body }) => body.error.code),
    Array.from({ length: 3 }, () => 'APPROVAL_DENIED'),
  );
  assert.match(answers[0]?.text ?? '', /not on Fridays/);
});

test('what an operator cannot read is apart from its group, and neither a button nor a key approves it', async (t) => {
  const agent = await agentWith('damaged', { for: 'use' });
  const send = (number: number) => call(agent, '/v1/damaged', `{"n":${number}}`);
  // Together: requests that come within two seconds are one card.
  const ids = (await Promise.all([1, 2, 3].map(send))).map(({ body }) => body.error.approval_id);
  const database = await openDirectDb(service.dataDir);
  t.after(() => database.close());
  await database.run(`DELETE FROM approval_requests WHERE id = '${ids[1]}'`);
  const opened = await browser.open(t, at('/approvals'));
  const { page } = opened;
  await signIn(opened, alice.token);
  const cards = card(opened, /\/v1\/damaged$/);
  const damaged = cards.filter({ hasText: 'can no longer be read, so it cannot be approved' });
  const readable = cards.filter({ hasText: '2 requests' });
  await damaged.waitFor();
  assert.equal(await readable.getByLabel('Body of the request').count(), 2);
  assert.equal(await damaged.getByRole('button', { name: 'Approve' }).isDisabled(), true);
  assert.deepEqual(await violationsOf(page), []);
  const pass = await stopClock(opened);
  await damaged.getByRole('link', { name: /v1\/damaged$/ }).focus();
  await pass();
  await page.keyboard.press('a');
  await untilSeen(damaged.getByRole('status').getByText(/cannot be approved\. Deny it/));
  assert.deepEqual(await violationsOf(page), []);
  await page.reload();
  await answer(opened, readable.getByRole('button', { name: 'Approve all 2' }));
  await readable.waitFor({ state: 'detached' });
  assert.equal((await send(2)).body.error.code, 'APPROVAL_PENDING');
  assert.deepEqual([(await send(1)).status, (await send(3)).status], [200, 200]);
  await answer(opened, damaged.getByRole('button', { name: 'Deny' }));
  await damaged.waitFor({ state: 'detached' });
  assert.equal((await send(2)).body.error.code, 'APPROVAL_DENIED');
});

test('a card shows each header as text, and that a WebSocket opens', async (t) => {
  const agent = await agentWith('upgrades', { for: 'use' });
  const { approval_id: id } = (await call(agent, '/v1/socket', '{}')).body.error;
  t.after(() => alice.delete(`/api/v1/approvals/${id}`));
  const opened = await browser.open(t, at('/approvals'));
  const { page } = opened;
  const warning = page.getByText('Opens a WebSocket: messages sent over it later are not shown');
  const headers = [
    { name: 'accept', value: `<b>a</b>\t${'\u00a0'.repeat(2)}\u2800\u3164` },
    { name: 'x-two', value: 'b' },
  ];
  const { body } = await alice.get(`/api/v1/approvals/${id}`);
  Object.assign(body.data.request, { headers, opens_websocket: true });
  await page.route(`**/api/v1/approvals/${id}`, (route) => route.fulfill({ json: body }));
  await signIn(opened, alice.token);
  const shown = card(opened, /\/v1\/socket$/);
  await warning.waitFor();
  assert.deepEqual(
    await shown.getByRole('list', { name: 'Headers of the request' }).getByRole('listitem').allInnerTexts(),
    ['accept: <b>a</b>\\u{9}\\u{a0}\\u{a0}\\u{2800}\\u{3164}', 'x-two: b'],
  );
  assert.deepEqual(await violationsOf(page), []);
  await page.unrouteAll();
  await page.reload();
  await shown.getByLabel('Body of the request').waitFor();
  assert.equal(await warning.count(), 0);
});

test('a click is not taken by a card that has just moved, or in a window that has just come to the front', async (t) => {
  const agent = await agentWith('mover', { for: 'use' });
  const older: string = (await call(agent, '/v1/older', '{}')).body.error.approval_id;
  const opened = await browser.open(t, at('/approvals'));
  const { page } = opened;
  await page.setViewportSize({ width: 1280, height: 1600 });
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  // Only the request that comes later is read late.
  await page.route(/\/api\/v1\/approvals\/[^?/]+$/, async (route) => {
    if (!route.request().url().endsWith(older)) await held;
    await route.continue();
  });
  await signIn(opened, alice.token);
  const shown = card(opened, /\/v1\/older$/);
  const approve = shown.getByRole('button', { name: 'Approve' });
  const notTaken = shown.getByText('Not answered: the request must be visible for half a second first.');
  await approve.waitFor();
  await call(agent, '/v1/newer', '{}');
  await page.getByText('Loading a request').waitFor();
  const pass = await stopClock(opened);
  await pass();
  release();
  await card(opened, /\/v1\/newer$/).waitFor();
  const { x = 0, y = 0, width = 0, height = 0 } = (await approve.boundingBox()) ?? {};
  await page.mouse.click(x + width / 2, y + height / 2);
  await untilSeen(notTaken);
  await pass();
  await page.evaluate(`dispatchEvent(new Event('focus'));`);
  const answered: string[] = [];
  page.on('request', (request) => void (request.method() === 'POST' && answered.push(request.url())));
  const first = await notTaken.elementHandle();
  await page.mouse.click(x + width / 2, y + height / 2);
  // Another element replaces it, so that an equal text is announced again.
  await first?.waitForElementState('hidden');
  await untilSeen(notTaken);
  assert.deepEqual(answered, []);
  assert.equal((await service.admin.get(`/api/v1/approvals/${older}`)).body.data.status, 'pending');
  await pass();
  await page.mouse.click(x + width / 2, y + height / 2);
  await shown.waitFor({ state: 'detached' });
});

test('a key answers only the card that has had the focus for half a second', async (t) => {
  const agent = await agentWith('hasty', { for: 'use' });
  await call(agent, '/v1/keys', '{}');
  const opened = await browser.open(t, at('/approvals'));
  const { page } = opened;
  await signIn(opened, alice.token);
  const shown = card(opened, /\/v1\/keys$/);
  await shown.getByLabel('Body of the request').waitFor();
  const pass = await stopClock(opened);
  await pass();
  await page.keyboard.press('a');
  await shown.getByRole('link', { name: /v1\/keys$/ }).focus();
  await page.keyboard.press('a');
  await untilSeen(shown.getByText('Not answered: the request must be visible for half a second first.'));
  // Even in a window that is lower than the card, a key answers from the title.
  await page.setViewportSize({ width: 1280, height: 400 });
  await untilSeen(shown.getByText('Not answered: the request must be visible for half a second first.'));
  assert.deepEqual(await violationsOf(page), []);
  await pass();
  assert.equal((await call(agent, '/v1/keys', '{}')).body.error.code, 'APPROVAL_PENDING');
  await page.keyboard.press('d');
  await shown.waitFor({ state: 'detached' });
  assert.equal((await call(agent, '/v1/keys', '{}')).body.error.code, 'APPROVAL_DENIED');
});

test('a quorum counts, and an operator approves once', async (t) => {
  const agent = await agentWith('pair', { for: 'use', quorum: 2 });
  const bob = await addOperator(service, 'bob', ['approver']);
  await call(agent, '/v1/two', '{}');
  const opened = await browser.open(t, at('/approvals'));
  const { page } = opened;
  await signIn(opened, alice.token);
  const shown = card(opened, /\/v1\/two$/);
  await shown.getByText('0 of 2').waitFor();
  await answer(opened, shown.getByRole('button', { name: 'Approve' }));
  await shown.getByText('1 of 2: alice').waitFor();
  assert.equal(await shown.getByRole('button', { name: 'Approve' }).isDisabled(), true);
  const [{ approval_id: id, nonce }] = (await bob.get('/api/v1/approvals?agent=pair')).body.data;
  await page.goto(at(`/approvals/${id}`));
  await page.getByText('1 of 2: alice').waitFor();
  await bob.post(`/api/v1/approvals/${id}/approve`, { nonce });
  await page.getByText('Approved', { exact: true }).waitFor();
  await page.getByText('alice, bob').waitFor();
  assert.equal((await call(agent, '/v1/two', '{}')).status, 200);
});

test('the history tells the outcomes apart', async (t) => {
  const agent = await agentWith('brief', { for: 'use', timeout: 1 });
  const { approval_id: id } = (await call(agent, '/v1/late', '{}')).body.error;
  const taken = (await call(await agentWith('undecided', { for: 'use' }), '/v1/taken', '{}')).body.error.approval_id;
  await alice.delete(`/api/v1/approvals/${taken}`);
  const opened = await browser.open(t, at('/approvals?view=history&agent=brief'));
  const { page } = opened;
  await signIn(opened, alice.token);
  const outcomes = (name: string) => page.getByRole('grid').getByText(name, { exact: true });
  await page.getByText('1 request', { exact: true }).waitFor();
  await page.goto(at(`/approvals/${id}`));
  await page.getByText('This is not a denial.').waitFor();
  await page.goto(at('/approvals?view=history'));
  for (const name of ['Approved', 'Denied', 'Timed out', 'Withdrawn']) await outcomes(name).first().waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await page.getByLabel('Outcome').selectOption('withdrawn');
  await page.getByText(/It was withdrawn/).waitFor();
  await outcomes('Withdrawn').first().waitFor();
  await page.getByText(/rejected at once as “no approver”/).waitFor();
  await page.getByRole('grid').focus();
  await page.keyboard.press('Enter');
  await page.getByText('It was withdrawn, or a policy').waitFor();
});

test('a link to a request that does not exist says so, whatever it has in place of an id', async (t) => {
  for (const id of ['100%25', 'absent', '0190d6a5-6a0e-7b3f-8c54-2f2f6d7e9a10']) {
    const opened = await browser.open(t, at(`/approvals/${id}`));
    const { page } = opened;
    // The browser reports the status if the page asks, which it does for an id.
    opened.expectReport(/ 404 /);
    await signIn(opened, alice.token);
    await page.getByRole('alert').getByText('NOT_FOUND').waitFor();
    assert.deepEqual(await violationsOf(page), []);
  }
});

interface Line {
  readonly y: number;
  readonly height: number;
}
const isInLine = (a: Line, b: Line): boolean => Math.abs(a.y + a.height / 2 - b.y - b.height / 2) < b.height / 2;

test('a viewer sees that a request waits, and why it cannot answer', async (t) => {
  const viewer = await addOperator(service, 'eve', ['viewer']);
  await call(await agentWith('seen', { for: 'use' }), '/v1/seen', '{"private":true}');
  const opened = await browser.open(t, at('/approvals'), { colorScheme: 'dark' });
  const { page } = opened;
  await signIn(opened, viewer.token);
  const shown = card(opened, /\/v1\/seen$/);
  await shown.getByText(/requires the approver role/).waitFor();
  assert.equal(await shown.getByRole('button').count(), 0);
  assert.equal((await page.content()).includes('private'), false);
  assert.deepEqual(await violationsOf(page), []);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  // The number of those that wait is next to its label.
  const [label, mark] = await Promise.all(
    [page.getByRole('link', { name: /^Approvals \d/ }), page.locator('.waiting-count')].map((each) =>
      each.boundingBox(),
    ),
  );
  assert.ok(label != null && mark != null && isInLine(label, mark), 'the number is on another line');
  await page.goto(at('/settings'));
  await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor();
  await page.locator('.waiting-count').waitFor({ state: 'attached' });
  await untilSeen(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Settings' }));
  assert.deepEqual(await violationsOf(page), []);
});

test('a request that may be read no more is not asked for again', async (t) => {
  const former = await addOperator(service, 'fay', ['approver']);
  await call(await agentWith('unread', { for: 'use' }), '/v1/unread', '{}');
  const [waiting] = (await former.get('/api/v1/approvals?status=pending&agent=unread')).body.data;
  const opened = await browser.open(t, at(`/approvals/${waiting.approval_id}`));
  const { page } = opened;
  await signIn(opened, former.token);
  await card(opened, /\/v1\/unread$/).waitFor();
  const statuses: number[] = [];
  page.on('response', (response) => {
    if (response.url().endsWith(waiting.approval_id)) statuses.push(response.status());
  });
  const reads = watchRequests(page, new RegExp(`${waiting.approval_id}$`));
  // The browser reports the status of the rejected read.
  const isReported = opened.expectReport(/^console: .* 403 /);
  assert.equal((await service.admin.put('/api/v1/operators/fay', { roles: ['viewer'] })).status, 200);
  await page.getByRole('alert').getByText('ACCESS_DENIED').waitFor();
  await reads.idle();
  const before = reads.started();
  await page.waitForTimeout(2500);
  assert.deepEqual([reads.started(), statuses.filter((status) => status === 403).length], [before, 1]);
  await isReported();
});
