// `leasehold doctor --state` and `--values` name each row that does not answer to the log, and show their progress.

import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { standBetween } from '../client/fault-proxy.ts';
import { newHome } from '../kit/command.ts';
import { executeSql } from '../kit/direct-db.ts';
import type { Scope } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const CREDENTIALS = 3;
/** The progress is removed at the end. */
const CLEARED = '\r\u001b[K';

async function openVault(scope: Scope): Promise<TestService & { agentToken: string }> {
  const service = await startTestService(scope);
  for (let at = 0; at < CREDENTIALS; at++) {
    await service.admin.post('/api/v1/credentials', { path: `prod/key-${at}`, value: 'v' });
  }
  const { token: agentToken } = await service.agent('bot', { 'prod/*': ['retrieve'] });
  return { ...service, agentToken };
}
const [intact, altered] = [await openVault({ after }), await openVault({ after })];

interface Finding {
  readonly check: string;
  readonly result: string;
  readonly found: string;
}

/** What the command finds about the log and the state. */
async function doctor(t: TestContext, { address, adminToken }: TestService, flag: string | null, token = adminToken) {
  const home = newHome(t, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: token });
  const { code, stdout, stderr } = await home.leasehold(['doctor', '-o', 'json', ...(flag === null ? [] : [flag])]);
  const findings: Finding[] = JSON.parse(stdout);
  const told = findings.filter(({ check }) => check === 'log' || check === 'state');
  return { code, stderr, told: told.map(({ check, result, found }) => `${check} ${result}: ${found}`) };
}

test('an unaltered vault passes, --values opens each value in addition, and only for the administrator', async (t) => {
  // The keyset and its slot have no entry yet.
  const rows = 2 * (CREDENTIALS + 3) + 2;
  for (const [flag, checked] of [
    ['--state', rows],
    ['--values', rows + CREDENTIALS],
  ] as const) {
    assert.deepEqual(await doctor(t, intact, flag), {
      code: 0,
      stderr: '',
      told: ['log ok: 7 entries, chain intact', `state ok: ${checked} rows, entries and values answer to the log`],
    });
  }
  assert.deepEqual((await doctor(t, intact, null)).told, [], 'without the flag the state is not checked');
  const { code, told } = await doctor(t, intact, '--state', intact.agentToken);
  assert.equal(code, 2);
  assert.match(told.join(), /^state wrong: .*\(ACCESS_DENIED\)$/);
});

test('each altered row is named with what is wrong, the first 100 of many, and a broken log; the exit code is 2', async (t) => {
  const { dataDir } = altered;
  await executeSql(
    dataDir,
    `UPDATE agents SET description = 'x'; DELETE FROM policies;
    UPDATE credentials SET newest_sealed = x'00' WHERE path = 'prod/key-1'`,
  );
  const named = ['state wrong: agent:bot: altered', 'state wrong: policy:bot-0: missing'];
  const value = 'state wrong: credential:prod/key-1 version 1: value unreadable';
  for (const [flag, problems] of [
    ['--state', named],
    ['--values', [...named, value]],
  ] as const) {
    const { code, told } = await doctor(t, altered, flag);
    assert.deepEqual([code, told], [2, ['log ok: 7 entries, chain intact', ...problems]]);
  }
  await executeSql(
    dataDir,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
    INSERT INTO policies SELECT 'p' || i, 'agent:bot', '["*"]', '["retrieve"]', 60, 1, 'mac', NULL, NULL FROM n`,
  );
  const many = await doctor(t, altered, '--state');
  assert.deepEqual([many.code, many.told.length, many.told.at(-1)], [2, 102, 'state wrong: 52 more']);
  await executeSql(dataDir, "UPDATE audit_entries SET reason = 'x' WHERE seq = 3");
  const broken = await doctor(t, altered, '--state');
  assert.equal(broken.code, 2);
  assert.match(broken.told[0] ?? '', /^log wrong: .*entry 3/);
});

test('a terminal shows how many rows were checked, and a finding is wrapped between its words', async (t) => {
  await executeSql(intact.dataDir, 'DELETE FROM sessions');
  const between = await standBetween(t, intact);
  const body = { running: false, entries_checked: null, entries_total: null, started_at: null, rows_checked: 1200 };
  // The check lasts until its progress is seen.
  const { promise: isShown, resolve: endCheck } = Promise.withResolvers<void>();
  between.next({ after: isShown }, ({ path }) => path.includes('/verify?'));
  for (let at = 0; at < 9; at++) {
    between.next({ status: 200, body: JSON.stringify({ data: body }) }, ({ path }) => path.endsWith('/progress'));
  }
  const environment = { LEASEHOLD_ADDR: between.address, LEASEHOLD_TOKEN: intact.adminToken };
  const home = newHome(t, environment);
  const checking = home.onTerminal(['doctor', '--state']);
  await checking.shows(/Checking {2}1,200/);
  endCheck();
  assert.equal((await checking.ended).exitCode, 2);
  assert.ok(checking.screen().includes(CLEARED));
  assert.match(checking.screen(), /state {11}wrong {3}session:\d{13}:\S+:\n {24}missing\n/);
});
