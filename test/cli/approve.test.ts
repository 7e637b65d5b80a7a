// `leasehold approve`: the operator's view, the keys that count, the output of the commands, and waiting commands.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { approvalCard, promptFor } from '../../src/cli/approvals/card.ts';
import { approvalAnnouncer } from '../../src/cli/call-hints.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import type { Approval } from '../../src/client/types.ts';
import { startUpstream } from '../broker/upstream.ts';
import { COMMAND, newHome } from '../kit/command.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import { addOperator } from '../kit/operators.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets, VALUE } from '../kit/use.ts';

interface Shown {
  readonly approval_id: string;
  readonly nonce: string;
}

/** Longer than any terminal takes to start. */
const HOLD_MS = 120_000;
const service = await startTestService({ after }, [], undefined, undefined, { approvalHoldMs: HOLD_MS });
const { admin, address, adminToken } = service;
const upstream = await startUpstream({ after }, (_request, response) => response.end('done'));
const origin = `https://127.0.0.1:${upstream.port}`;
await storeWithTargets(service, 'llm/key', upstream);
const environment = { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: adminToken };
const home = newHome({ after }, environment);
const alice = await addOperator(service, 'alice', ['approver']);

async function agentWith(name: string, approval: object = { for: 'use' }) {
  const agent = await service.agent(name);
  const policy = { principal: `agent:${name}`, resources: ['llm/*'], actions: ['use'], approval };
  await admin.put(`/api/v1/policies/of-${name}`, policy);
  const send = (url: string, fields: object = {}) =>
    agent.post('/api/v1/use', { path: 'llm/key', method: 'POST', url: origin + url, ...fields });
  return { ...agent, send };
}

const pendingOf = async (name: string, count = 1): Promise<Shown[]> => {
  for (;;) {
    const { data } = (await admin.get(`/api/v1/approvals?status=pending&agent=${name}`)).body;
    if (data.length >= count) return data;
    await sleep(25);
  }
};

const READY = /\[a\] approve {2}\[d\] deny {2}\[s\] skip {2}\[q\] quit $/;

const watch = (columns = 80) => home.onTerminal(['approve'], { columns });

test('the exact request is shown, and what was typed before has no effect on it', async () => {
  const bot = await agentWith('bot');
  const screen = watch();
  await screen.shows(/Nothing waits for an answer/);
  screen.type('aaaa');
  const fields = {
    body: '{"to":"a\u001b[2J\u202e"}',
    purpose: 'pay the "bill"',
    headers: { 'content-type': 'application/json' },
  };
  const held = bot.send('/v1/pay?amount=7', fields);
  await screen.shows(READY);
  const seen = screen.screen();
  assert.match(seen, /─{80}\nagent:bot asks to use llm\/key\n/);
  assert.ok(seen.includes(`POST ${origin}/v1/pay?amount=7\n`));
  assert.ok(seen.includes('  | {"to":"a\\u001b[2J\\u202e"}\n'), seen);
  assert.ok(seen.includes('  Purpose: "pay the \\"bill\\""\n'), seen);
  assert.match(seen, /application\/json, \d+ bytes, SHA-256:\n {2}[0-9a-f]{64}\n/);
  assert.match(
    seen,
    /Policies {3}of-bot\nCovers {5}This exact POST request to https:\S+ with\n {11}llm\/key by agent:bot, once/,
  );
  assert.match(seen, /Answer {5}within [45] min \d+ s\n/);
  const card = seen.slice(seen.lastIndexOf('─'.repeat(80)));
  assert.deepEqual(
    card.split('\n').filter((line) => Array.from(line).length > 80),
    [],
  );
  screen.type('d');
  await screen.shows(/Reason, for the agent and the audit log/);
  screen.type('not today\r');
  await screen.shows(/Denied\./);
  const { status, body } = await held;
  assert.deepEqual([status, body.error.code], [403, 'APPROVAL_DENIED']);
  assert.match(body.error.message, /: not today\./);
  await screen.shows(/Nothing waits[\s\S]*Nothing waits/);
  screen.type('\u0003');
  assert.equal((await screen.ended).exitCode, 130);
});

test('equal requests are one card with all that differs, and one key answers all of them', async () => {
  const bot = await agentWith('many');
  const held = [bot.send('/v1/a?n=1'), bot.send('/v1/a?n=2'), bot.send('/v1/a?n=3')];
  await pendingOf('many', 3);
  const screen = watch(120);
  await screen.shows(/3 requests, one answer: agent:many asks to use llm\/key/);
  await screen.shows(READY);
  for (const n of [1, 2, 3]) assert.ok(screen.screen().includes(`/v1/a?n=${n}\n`));
  screen.type('a');
  await screen.shows(/Approved: the request passes\. \(3 requests\)/);
  for (const { status } of await Promise.all(held)) assert.equal(status, 200);
  await screen.shows(/Nothing waits/);
  // A key right after the prompt does not count yet.
  const quitting = setInterval(() => screen.type('q'), 50);
  assert.equal((await screen.ended).exitCode, 0);
  clearInterval(quitting);
});

test('a request that ends while it is shown takes no key, and the next one needs another key', async (t) => {
  const bot = await agentWith('gone');
  const first = bot.send('/v1/first');
  const [{ approval_id: id = '' } = {}] = await pendingOf('gone');
  const screen = openPseudoTerminal(t, [...COMMAND, 'approve'], {
    cwd: home.path,
    environment: { ...environment, HOME: home.path },
  });
  await screen.shows(READY);
  const second = bot.send('/v1/second');
  await pendingOf('gone', 2);
  // The command reads the key when the request has ended.
  process.kill(screen.pid, 'SIGSTOP');
  await bot.delete(`/api/v1/approvals/${id}`);
  assert.equal((await first).body.error.code, 'APPROVAL_WITHDRAWN');
  screen.type('a');
  process.kill(screen.pid, 'SIGCONT');
  await screen.shows(/withdrawn/);
  await screen.shows(/v1\/second[\s\S]*\[q\] quit $/);
  screen.type('s');
  await screen.shows(/Nothing waits/);
  assert.equal((await pendingOf('gone')).length, 1);
  const listed = await home.leasehold(['approve', 'list', '--status', 'pending', '--agent-name', 'gone', '-o', 'json']);
  const [{ approval_id: other }] = JSON.parse(listed.stdout);
  const denied = await home.leasehold(['approve', other, '--deny', '--reason', 'no']);
  assert.deepEqual([denied.code, denied.stderr], [0, 'Denied.\n']);
  assert.equal((await second).status, 403);
});

/** The card of the requests, by lines. */
function linesOf(columns: number, ...group: readonly [Approval, ...Approval[]]): string[] {
  return approvalCard(group, { columns, now: Date.now() }).split('\n');
}

async function readPending(name: string, path: string, fields: object = {}): Promise<Approval> {
  const bot = await agentWith(name);
  const held = bot.send(path, fields);
  const [{ approval_id: id = '' } = {}] = await pendingOf(name);
  const { data } = (await admin.get(`/api/v1/approvals/${id}`)).body;
  await bot.delete(`/api/v1/approvals/${id}`);
  await held;
  return { ...data, status: 'pending' };
}

test('a card shows the headers and that a WebSocket opens, and requests that differ in them are not alike', async () => {
  const read = await readPending('upgrades', '/v1/socket');
  const { request } = read;
  assert.ok(request);
  const headers = [
    { name: 'accept', value: 'text/plain\u00a0\u200b' },
    { name: 'x-two', value: `a${' '.repeat(80)}x-three: forged` },
  ];
  const socket = { ...read, request: { ...request, headers, opens_websocket: true } };
  const lines = linesOf(80, socket);
  const loud = '  !!! Opens a WebSocket: messages sent over it later are not shown';
  const at = lines.indexOf(loud);
  assert.deepEqual(lines.slice(at, at + 3), [loud, '  Headers:', '    accept: text/plain\\u00a0\\u200b']);
  assert.deepEqual(
    lines.filter((line) => line.includes('x-three')).map((line) => /^ {8,}/.test(line)),
    [true],
  );
  assert.equal(linesOf(80, read).includes('  Headers:'), false);
  assert.equal(linesOf(80, read).includes(loud), false);
  const [first = assert.fail()] = headers;
  const others = [
    { ...request, headers: [first] },
    { ...request, opens_websocket: true },
  ].map((each) => ({ ...read, request: each }));
  assert.equal(linesOf(80, read, read, ...others).filter((line) => line.includes('/v1/socket (2 times)')).length, 1);
  const shown = linesOf(80, read, ...others).filter((line) => line.startsWith('  POST '));
  assert.equal(shown.length, 3);
});

test('no text of an agent can look like another line of the card, also with wide and empty characters', async () => {
  const forged = 'Covers     Nothing';
  const read = await readPending('forger', '/v1/forged', { body: 'b', purpose: `${'p'.repeat(68)}${forged}` });
  const { request } = read;
  assert.ok(request);
  const wide = '\u4f60\u{1f600}'.repeat(19);
  const body = `${wide}${forged}`;
  const lines = linesOf(80, { ...read, request: { ...request, body } });
  const columnsOf = (line: string) => [...line].reduce((sum, each) => sum + (/^[ -~─]$/.test(each) ? 1 : 2), 0);
  assert.deepEqual(
    lines.filter((line) => columnsOf(line) > 80),
    [],
  );
  assert.deepEqual(
    lines.filter((line) => line.includes(forged)),
    [`  | ${forged}`, `        ${forged}"`],
  );
  const empty = '\u00a0\u034f\u115f\u1160\u2003\u2800\u3000\u3164\ufe0f\uffa0';
  const escaped = [...empty].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const seen = linesOf(80, { ...read, request: { ...request, body: `${empty} é` } });
  assert.ok(seen.includes(`  | ${escaped} é`), seen.join('\n'));
});

test('a request that can no longer be read is not approved, also with --yes, and can be denied', async (t) => {
  const bot = await agentWith('damaged');
  const held = bot.send('/v1/damaged');
  const [{ approval_id: id = '' } = {}] = await pendingOf('damaged');
  const database = await openDirectDb(service.dataDir);
  t.after(() => database.close());
  await database.run('DELETE FROM approval_requests');
  const refused = await home.leasehold(['approve', id, '--yes']);
  assert.deepEqual(
    [refused.code, refused.stderr],
    [3, 'Not approved: the request can no longer be read. Deny it, and the agent can ask again.\n'],
  );
  assert.equal((await pendingOf('damaged')).length, 1);
  assert.equal((await home.leasehold(['approve', id, '--deny'])).code, 0);
  assert.equal((await held).body.error.code, 'APPROVAL_DENIED');
});

test('by id: shown, approved, withdrawn, and never without a terminal or --yes', async () => {
  const bot = await agentWith('single', { for: 'use', each: 'endpoint', scope: '5 uses' });
  const held = bot.send('/v1/x?q=1', { body: 'b' });
  const [{ approval_id: id = '' } = {}] = await pendingOf('single');
  const shown = await home.leasehold(['approve', 'show', id]);
  assert.match(
    shown.stdout,
    /agent:single asks to use llm\/key\n[\s\S]*\n {2}\| b\n[\s\S]*Covers {5}Any POST request to [\s\S]* 5 times/,
  );
  const read = (await admin.get(`/api/v1/approvals/${id}`)).body.data;
  assert.deepEqual(promptFor([read], ['q']), { allowed: ['a', 'q'], prompt: '[a] approve  [q] quit ' });
  // What cannot be shown cannot be approved.
  assert.deepEqual(promptFor([read, { ...read, request: null }], ['d', 'q']).allowed, ['d', 'q']);
  const asked = await home.leasehold(['approve', id]);
  assert.equal(asked.code, 1);
  assert.match(asked.stderr, /this needs a terminal\.\n {2}To answer one request: leasehold approve ID --yes/);
  assert.equal((await home.leasehold(['approve'])).code, 1);
  const approved = await home.leasehold(['approve', `approval:${id}`, '--yes', '-o', 'json']);
  assert.equal(approved.code, 0, approved.stderr);
  assert.deepEqual([JSON.parse(approved.stdout).status, JSON.parse(approved.stdout).uses_left], ['approved', 5]);
  assert.equal((await held).status, 200);
  const again = await home.leasehold(['approve', id, '--yes']);
  assert.deepEqual([again.code, /approved already/.test(again.stderr)], [2, true]);
  const ended = await home.leasehold(['approve', 'withdraw', id]);
  assert.deepEqual([ended.code, ended.stderr], [0, `Withdrew approval:${id}.\n`]);
  const both = await home.leasehold(['approve', id, '--yes', '--deny']);
  assert.equal(both.code, 1);
});

test('by id on a terminal: the card, and the same keys', async () => {
  const agent = await service.agent('reader');
  const policy = {
    principal: 'agent:reader',
    resources: ['llm/*'],
    actions: ['retrieve'],
    approval: { for: 'retrieve' },
  };
  await admin.put('/api/v1/policies/of-reader', policy);
  const held = agent.get('/api/v1/credentials/llm/key');
  const [{ approval_id: id = '' } = {}] = await pendingOf('reader');
  const quit = home.onTerminal(['approve', id]);
  await quit.shows(
    /The value itself[\s\S]*One retrieval of llm\/key by[\s\S]*\[a\] approve {2}\[d\] deny {2}\[q\] quit $/,
  );
  quit.type('q');
  assert.equal((await quit.ended).exitCode, 3);
  assert.match(quit.screen(), /Nothing was done\./);
  const deny = home.onTerminal(['approve', id]);
  await deny.shows(/\[q\] quit $/);
  deny.type('d');
  await deny.shows(/Reason, for the agent/);
  deny.type('\r');
  assert.equal((await deny.ended).exitCode, 0);
  assert.match(deny.screen(), /Denied\./);
  assert.match((await held).body.error.message, /^The approval was denied by \S+\. /);
});

/** An agent whose commands wait, and the answers of an operator. */
async function commandsOf(name: string, approval: object) {
  await service.agent(name);
  const policy = { principal: `agent:${name}`, resources: ['llm/*'], actions: ['use', 'retrieve'], approval };
  await admin.put(`/api/v1/policies/of-${name}`, policy);
  const key = `${service.dataDir}/agents/${name}/private_key.pem`;
  const own = newHome({ after }, { LEASEHOLD_ADDR: address, LEASEHOLD_AGENT: name, LEASEHOLD_KEY_FILE: key });
  const pending = async (): Promise<Shown> => (await pendingOf(name))[0] ?? assert.fail();
  const answer = ({ approval_id: id, nonce }: Shown, verb: 'approve' | 'deny', fields: object = {}) =>
    alice.post(`/api/v1/approvals/${id}/${verb}`, { nonce, ...fields });
  return { home: own, pending, answer };
}

const USE = ['use', 'llm/key', 'GET', '/v1/x'];

const noticeOf = (id: string): string =>
  `leasehold: waiting for approval (approval:${id}); an operator can run: leasehold approve ${id}\n`;

test('each approval is announced once, however often a call asks again', () => {
  const stderr = new PassThrough({ encoding: 'utf8' });
  const announce = approvalAnnouncer({ stderr } as unknown as Terminal);
  for (const id of ['one', 'one', 'two']) announce(id);
  assert.equal(stderr.read(), noticeOf('one') + noticeOf('two'));
});

test('use says after a moment what it waits for, before its hold ends, and ends as approved', async () => {
  const { home, pending, answer } = await commandsOf('waits', { for: 'use' });
  const noticed = Promise.withResolvers<void>();
  const using = home.leasehold(USE, { onStderr: () => noticed.resolve() });
  const shown = await pending();
  // The hold ends with the answer, which comes after the notice.
  await noticed.promise;
  await answer(shown, 'approve');
  const { code, stdout, stderr } = await using;
  assert.deepEqual([code, stdout, stderr], [0, 'done', noticeOf(shown.approval_id)]);
  const families = await scrape(address);
  assert.equal(seriesValue(families, 'leasehold_http_rejections_total', { code: 'APPROVAL_PENDING' }), 0);
});

test('a denial, an end of time, a withdrawal and no approver are told apart, and end with 3', async () => {
  const bot = await commandsOf('told', { for: 'use' });
  const denied = bot.home.leasehold(USE);
  await bot.answer(await bot.pending(), 'deny', { reason: 'wrong account' });
  const first = await denied;
  assert.equal(first.code, 3);
  assert.match(
    first.stderr.replace(/^leasehold: waiting for approval .*\n/, ''),
    /^leasehold: The approval was denied by operator:alice: wrong account\. [\s\S]*APPROVAL_DENIED/,
  );
  assert.match(first.stderr, /\n {2}To see the request and the answer: leasehold approve show [0-9a-f-]{36}\n$/);
  const withdrawn = bot.home.leasehold(['use', 'llm/key', 'GET', '/v1/y']);
  const { approval_id: id } = await bot.pending();
  assert.equal((await bot.home.leasehold(['approve', 'withdraw', id])).code, 0);
  const second = await withdrawn;
  assert.equal(second.code, 3);
  assert.match(
    second.stderr,
    /withdrawn by told\. This is not a refusal[\s\S]*APPROVAL_WITHDRAWN[\s\S]*\n {2}Run the command again/,
  );
  const late = await commandsOf('late', { for: 'use', timeout: 1 });
  const third = await late.home.leasehold(USE);
  assert.equal(third.code, 3);
  assert.match(third.stderr, /The approval timed out[\s\S]*This is not a refusal[\s\S]*APPROVAL_TIMED_OUT/);
  const alone = await commandsOf('alone', { for: 'use', quorum: 9 });
  const fourth = await alone.home.leasehold(USE);
  assert.equal(fourth.code, 3);
  assert.match(fourth.stderr, /NO_APPROVER[\s\S]*leasehold operator add NAME --role approver/);
});

test('get and run wait too, and run starts no program without the approval', async () => {
  const { home, pending, answer } = await commandsOf('reads', { for: 'retrieve' });
  const getting = home.leasehold(['get', 'llm/key']);
  await answer(await pending(), 'approve');
  assert.deepEqual([(await getting).code, (await getting).stdout], [0, VALUE]);
  const running = home.leasehold(['run', '--env', 'KEY=llm/key', '--', 'sh', '-c', 'echo started'], {
    isInProcess: true,
  });
  await answer(await pending(), 'deny');
  const { code, stdout, stderr } = await running;
  assert.deepEqual([code, stdout], [3, '']);
  assert.match(stderr, /leasehold: KEY \(llm\/key\): The approval was denied by operator:alice/);
});
