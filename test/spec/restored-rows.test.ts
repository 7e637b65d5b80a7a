// Rows that were replayed, rolled back, modified or deleted in the database grant nothing, and are found and named.
// SOURCE: docs/formats.md, "State in the log".
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scanState } from '../../src/vault/audit/verification/state-scan.ts';
import { sweepAll } from '../contract/sweeping.ts';
import { executeSql } from '../kit/direct-db.ts';
import { scaled } from '../kit/scale.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { openStore, STORE } from '../kit/stores.ts';
import { startTestClock, type TestClock } from '../kit/test-clock.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';
import {
  ATTACKS,
  type Attack,
  attack,
  KINDS,
  type Kind,
  PROBLEM,
  prepare,
  probe,
  subjectOf,
  TARGETS,
} from './state-attacks.ts';

const DAY_MS = 24 * 3_600_000;

interface Problem {
  readonly subject: string;
  readonly problem: string;
}

/** The problems that a verification of the state, or of the values, finds over an intact audit log. */
async function problemsOf({ admin }: TestService, query = 'state'): Promise<readonly Problem[]> {
  const { valid, state } = (await admin.get(`/api/v1/audit/verify?${query}=true`)).body.data;
  assert.equal(valid, true);
  assert.equal(state.problem_count, state.problems.length);
  return state.problems;
}

const sorted = (problems: readonly Problem[]): readonly Problem[] =>
  problems.toSorted((a, b) => (a.subject < b.subject ? -1 : 1));

interface Attempt {
  readonly kind: Kind;
  readonly how: Attack;
}

/** An attack on each kind of row. The rounds together try every attack on every kind. */
const attemptsOf = (round: number): readonly Attempt[] =>
  KINDS.map((kind, index) => {
    const how = ATTACKS[(index + round) % ATTACKS.length] ?? assert.fail();
    return { kind, how: how === 'rolled back' && TARGETS[kind].change === null ? 'changed' : how };
  });

/** Missing rows look like rows that never existed. */
const deniedStatus = ({ kind, how }: Attempt): number =>
  kind === 'credential' && how === 'taken away' ? 404 : TARGETS[kind].denied;

/** Whether nodes hold the rows in memory. */
const isControl = ({ kind }: Attempt): boolean => kind === 'agent' || kind === 'operator' || kind === 'policy';

/** A row of each kind, the tokens that need them, and the edits of the database. */
async function prepareAll(attempts: readonly Attempt[], service: TestService, clock: TestClock) {
  const tokens = new Map<Kind, string>();
  for (const { kind } of attempts) tokens.set(kind, await prepare(kind, service));
  const edits: (() => Promise<void>)[] = [];
  for (const { kind, how } of attempts) edits.push(await attack(kind, how, service, tokens.get(kind) ?? '', clock));
  const problems: Problem[] = [];
  for (const { kind, how } of attempts)
    problems.push({ subject: await subjectOf(kind, service.dataDir), problem: PROBLEM[how] });
  const edit = async (): Promise<void> => {
    for (const each of edits) await each();
  };
  return { tokens, edit, problems: sorted(problems) };
}

/** Rounds 0 and 2 put back an earlier row of each kind, and change or delete one of each. */
const ROUNDS = ATTACKS.map((_, round) => round).filter((round) => round % scaled(2, 1) === 0);

for (const round of ROUNDS) {
  const attempts = attemptsOf(round);

  test(`rows that were edited while stopped grant nothing; start and verification name them (${round})`, async (t) => {
    const clock = startTestClock(t);
    const service = await startTestService(t);
    const { tokens, edit, problems } = await prepareAll(attempts, service, clock);
    await service.stop();
    await edit();
    const again = await startTestService(t, [], service.dataDir);
    for (const attempt of attempts) {
      const status = await probe(attempt.kind, again, tokens.get(attempt.kind) ?? '');
      assert.equal(status, deniedStatus(attempt), `${attempt.kind} ${attempt.how}`);
    }
    assert.deepEqual(sorted(await problemsOf(again)), problems);
    assert.equal(again.warnings.length, 1, again.warnings.join('\n'));
    const [warning = ''] = again.warnings;
    for (const { kind } of attempts.filter(isControl))
      assert.ok(warning.includes(await subjectOf(kind, service.dataDir)), warning);
    await again.stop();
  });

  if (STORE === 'postgres') {
    test(`rows that were edited while nodes run grant nothing on either, and verification names them (${round})`, async (t) => {
      const clock = startTestClock(t);
      const service = await startTestService(t);
      const { tokens, edit, problems } = await prepareAll(attempts, service, clock);
      const other = await startAnotherNode(t, service);
      await edit();
      // Nodes read such rows if their epoch is later than the one they know.
      for (const { kind } of attempts.filter(isControl)) {
        for (const [table, where] of Object.entries(TARGETS[kind].tables))
          await executeSql(service.dataDir, `UPDATE ${table} SET epoch = 1000000 WHERE ${where}`);
      }
      for (const node of [service, other]) {
        await node.admin.put('/api/v1/policies/other', { principal: 'agent:x', resources: ['x'], actions: ['list'] });
      }
      for (const node of [service, other]) {
        // A row that is in force and was only deleted stays in memory until it is read again.
        for (const attempt of attempts.filter((one) => !isControl(one) || one.how !== 'taken away')) {
          const status = await probe(attempt.kind, node, tokens.get(attempt.kind) ?? '');
          assert.equal(status, deniedStatus(attempt), `${attempt.kind} ${attempt.how}`);
        }
        assert.deepEqual(sorted(await problemsOf(node)), problems);
      }
      await other.stop();
    });
  }
}

test('rows that do not match the audit log are in force again once they are made again', async (t) => {
  const service = await startTestService(t);
  await prepare('policy', service);
  await service.stop();
  await executeSql(service.dataDir, 'DELETE FROM agents; DELETE FROM policies; DELETE FROM credentials');
  const again = await startTestService(t, [], service.dataDir);
  assert.match(again.warnings.join('\n'), /^2 rows .*policy:bot-policy-0 \(removed\)/);
  await again.admin.delete('/api/v1/targets/policy/key');
  await executeSql(service.dataDir, 'DELETE FROM sessions; DELETE FROM credential_targets');
  rmSync(join(service.dataDir, 'agents', 'bot-policy'), { recursive: true, force: true });
  await prepare('policy', again);
  // The session that was deleted is missing until it would have ended.
  assert.deepEqual(
    (await problemsOf(again)).map(({ problem }) => problem),
    ['missing'],
  );
  await again.stop();
  assert.deepEqual((await startTestService(t, [], service.dataDir)).warnings, []);
});

test('rows with an empty key are checked', async (t) => {
  const service = await startTestService(t);
  await prepare('policy', service);
  await executeSql(
    service.dataDir,
    "UPDATE agents SET id = ''; UPDATE policies SET name = ''; UPDATE credential_targets SET path = ''; UPDATE credentials SET id = ''",
  );
  const told = async (query: string): Promise<readonly string[]> =>
    (await problemsOf(service, query)).map(({ subject, problem }) => `${subject}: ${problem}`);
  const altered = ['agent:bot-policy', 'policy:', 'credential:policy/key', 'targets:'];
  const missing = ['policy:bot-policy-0: missing', 'targets:policy/key: missing'];
  assert.deepEqual(await told('state'), [...altered.map((subject) => `${subject}: altered`), ...missing]);
  assert.ok((await told('values')).includes('credential:policy/key version 1: value unreadable'));
});

test('targets of a removed credential are named when inserted again, with or without another one at the path', async (t) => {
  const service = await startTestService(t);
  await prepare('targets', service);
  await executeSql(service.dataDir, 'CREATE TABLE kept_usages AS SELECT * FROM credential_targets');
  await service.admin.delete('/api/v1/credentials/targets/key');
  await executeSql(service.dataDir, 'INSERT INTO credential_targets SELECT * FROM kept_usages; DROP TABLE kept_usages');
  for (let isStoredAgain = false; ; isStoredAgain = true) {
    assert.equal((await service.admin.get('/api/v1/targets/targets/key')).status, 404);
    assert.deepEqual(await problemsOf(service), [{ subject: 'targets:targets/key', problem: 'not as recorded' }]);
    if (isStoredAgain) break;
    await service.admin.post('/api/v1/credentials', { path: 'targets/key', value: 'other' });
  }
});

test('the rows of ended sessions that a sweep removed are not missing', async (t) => {
  const service = await startTestService(t);
  await service.agent('bot');
  await service.stop();
  const [store, keys] = [await openStore(service.dataDir), await vaultKeysOf(service.dataDir)];
  const swept = Date.now() + 2 * DAY_MS;
  await sweepAll(store, swept, 1000);
  const findAt = async (now: number) => {
    let found: readonly { problem: string }[] = [];
    for await (const { problems } of scanState({ store, keys, clock: { now: () => now } }, true)) found = problems;
    return found.map(({ problem }) => problem);
  };
  assert.deepEqual([await findAt(swept), await findAt(Date.now())], [[], ['missing']]);
  await store.close();
});
