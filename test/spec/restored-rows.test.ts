// Rows that were replayed, rolled back, modified or deleted in the database grant nothing, and are found and named.
// SOURCE: docs/formats.md, "State in the log".
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scanState } from '../../src/vault/verification/state-scan.ts';
import { sweepAll } from '../contract/sweeping.ts';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { openStore, STORE } from '../kit/stores.ts';
import { startTestClock } from '../kit/test-clock.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';
import { insert } from './raw-rows.ts';
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

/** Missing rows look like rows that never existed. */
function denied(kind: Kind, how: Attack): number {
  return kind === 'credential' && how === 'taken away' ? 404 : TARGETS[kind].denied;
}

/** Whether nodes hold the rows in memory. */
const isControl = (kind: Kind): boolean => kind === 'agent' || kind === 'operator' || kind === 'policy';

for (const how of ATTACKS) {
  const kinds = KINDS.filter((kind) => TARGETS[kind].change !== null || how !== 'rolled back');

  /** A row of each kind, the tokens that need them, and the edits of the database. */
  const prepareAll = async (service: TestService, clock: ReturnType<typeof startTestClock>) => {
    const tokens = new Map<Kind, string>();
    for (const kind of kinds) tokens.set(kind, await prepare(kind, service));
    const edits: (() => Promise<void>)[] = [];
    for (const kind of kinds) edits.push(await attack(kind, how, service, tokens.get(kind) ?? '', clock));
    const problems: Problem[] = [];
    for (const kind of kinds) problems.push({ subject: await subjectOf(kind, service.dataDir), problem: PROBLEM[how] });
    const edit = async (): Promise<void> => {
      for (const each of edits) await each();
    };
    return { tokens, edit, problems: sorted(problems) };
  };

  test(`a row of each kind, ${how} while stopped, grants nothing; start and verification name it`, async (t) => {
    const clock = startTestClock(t);
    const service = await startTestService(t);
    const { tokens, edit, problems } = await prepareAll(service, clock);
    await service.stop();
    await edit();
    const again = await startTestService(t, [], service.dataDir);
    for (const kind of kinds) assert.equal(await probe(kind, again, tokens.get(kind) ?? ''), denied(kind, how), kind);
    assert.deepEqual(sorted(await problemsOf(again)), problems);
    assert.equal(again.warnings.length, 1, again.warnings.join('\n'));
    const [warning = ''] = again.warnings;
    for (const kind of kinds.filter(isControl))
      assert.ok(warning.includes(await subjectOf(kind, service.dataDir)), warning);
    await again.stop();
  });

  if (STORE === 'postgres') {
    test(`a row of each kind, ${how} while nodes run, grants nothing on either, and verification names it`, async (t) => {
      const clock = startTestClock(t);
      const service = await startTestService(t);
      const { tokens, edit, problems } = await prepareAll(service, clock);
      const other = await startAnotherNode(t, service);
      await edit();
      // Nodes read such rows if their epoch is later than the one they know.
      for (const kind of kinds.filter(isControl)) {
        for (const [table, where] of Object.entries(TARGETS[kind].tables))
          await executeSql(service.dataDir, `UPDATE ${table} SET epoch = 1000000 WHERE ${where}`);
      }
      for (const node of [service, other]) {
        await node.admin.put('/api/v1/policies/other', { principal: 'agent:x', resources: ['x'], actions: ['list'] });
      }
      for (const node of [service, other]) {
        // A row that is in force and was only deleted stays in memory until it is read again.
        for (const kind of kinds.filter((one) => !isControl(one) || how !== 'taken away'))
          assert.equal(await probe(kind, node, tokens.get(kind) ?? ''), denied(kind, how), kind);
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
  await executeSql(service.dataDir, 'DELETE FROM sessions; DELETE FROM usages');
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
    "UPDATE agents SET id = ''; UPDATE policies SET name = ''; UPDATE usages SET path = ''; UPDATE credentials SET id = ''",
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
  const [row] = await selectRows(service.dataDir, 'SELECT * FROM usages');
  assert.ok(row);
  await service.admin.delete('/api/v1/credentials/targets/key');
  await executeSql(service.dataDir, insert('usages', row));
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
