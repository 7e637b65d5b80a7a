// Commands that wait for an approval: what they say meanwhile, and how the five outcomes end.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApprovalNotices } from '../../src/cli/approval-notice.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { startUpstream } from '../broker/upstream.ts';
import { newHome } from '../kit/command.ts';
import { addOperator } from '../kit/operators.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets, VALUE } from '../kit/use.ts';

const upstream = await startUpstream({ after }, (_request, response) => response.end('done'));

interface Shown {
  readonly approval_id: string;
  readonly nonce: string;
}

/** It holds requests until the answer. */
const service = await startTestService({ after }, [], undefined, undefined, { approvalHoldMs: 120_000 });
const { admin, address, dataDir } = service;
await storeWithTargets(service, 'llm/key', upstream);
const alice = await addOperator(service, 'alice', ['approver']);

async function agentWith(name: string, approval: object) {
  await service.agent(name);
  const policy = { principal: `agent:${name}`, resources: ['llm/*'], actions: ['use', 'retrieve'], approval };
  await admin.put(`/api/v1/policies/of-${name}`, policy);
  const key = `${dataDir}/agents/${name}/private_key.pem`;
  const home = newHome({ after }, { LEASEHOLD_ADDR: address, LEASEHOLD_AGENT: name, LEASEHOLD_KEY_FILE: key });
  const pending = async (): Promise<Shown> => {
    for (;;) {
      const [found] = (await alice.get(`/api/v1/approvals?status=pending&agent=${name}`)).body.data;
      if (found !== undefined) return found;
      await sleep(25);
    }
  };
  const answer = ({ approval_id: id, nonce }: Shown, verb: 'approve' | 'deny', fields: object = {}) =>
    alice.post(`/api/v1/approvals/${id}/${verb}`, { nonce, ...fields });
  return { home, pending, answer };
}

const USE = ['use', 'llm/key', 'GET', '/v1/x'];

const noticeOf = (id: string): string =>
  `leasehold: waiting for approval (approval:${id}); an operator can run: leasehold approve ${id}\n`;

test('each approval is announced once, however often a call asks again', () => {
  const stderr = new PassThrough({ encoding: 'utf8' });
  const notices = new ApprovalNotices({ stderr } as unknown as Terminal);
  for (const id of ['one', 'one', 'two']) notices.announce(id);
  assert.equal(stderr.read(), noticeOf('one') + noticeOf('two'));
});

test('use says after a moment what it waits for, before its hold ends, and ends as approved', async () => {
  const { home, pending, answer } = await agentWith('waits', { for: 'use' });
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
  const bot = await agentWith('bot', { for: 'use' });
  const denied = bot.home.leasehold(USE);
  await bot.answer(await bot.pending(), 'deny', { reason: 'wrong account' });
  const [first] = [await denied];
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
    /withdrawn by bot\. This is not a refusal[\s\S]*APPROVAL_WITHDRAWN[\s\S]*\n {2}Run the command again/,
  );
  const late = await agentWith('late', { for: 'use', timeout: 1 });
  const third = await late.home.leasehold(USE);
  assert.equal(third.code, 3);
  assert.match(third.stderr, /The approval timed out[\s\S]*This is not a refusal[\s\S]*APPROVAL_TIMED_OUT/);
  const alone = await agentWith('alone', { for: 'use', quorum: 9 });
  const fourth = await alone.home.leasehold(USE);
  assert.equal(fourth.code, 3);
  assert.match(fourth.stderr, /NO_APPROVER[\s\S]*leasehold operator add NAME --role approver/);
});

test('get and run wait too, and run starts no program without the approval', async () => {
  const { home, pending, answer } = await agentWith('reads', { for: 'retrieve' });
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
