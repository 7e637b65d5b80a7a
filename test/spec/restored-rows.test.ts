// A row that was inserted again, set back, changed or taken away outside grants nothing, and is found and named.
// SOURCE: docs/formats.md, "State in the log".
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { executeSql } from '../kit/direct-db.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { startTestClock } from '../kit/test-clock.ts';
import {
  ATTACKS,
  type Attack,
  attack,
  KINDS,
  type Kind,
  PROBLEM,
  prepare,
  prepareFor,
  probe,
  TARGETS,
} from './state-attacks.ts';

const VERIFY = '/api/v1/audit/verify?state=true';

async function problemsOf({ admin }: TestService) {
  const { valid, state } = (await admin.get(VERIFY)).body.data;
  assert.equal(valid, true);
  assert.equal(state.problem_count, state.problems.length);
  return state.problems;
}

/** Missing rows look like rows that never existed. */
function denied(kind: Kind, how: Attack): number {
  return kind === 'credential' && how === 'taken away' ? 404 : TARGETS[kind].denied;
}

/** Whether nodes hold the rows in memory. */
const isControl = (kind: Kind): boolean => kind === 'agent' || kind === 'operator' || kind === 'policy';

const cases = KINDS.flatMap((kind) => ATTACKS.map((how) => ({ kind, how }))).filter(
  ({ kind, how }) => TARGETS[kind].change !== null || how !== 'set back',
);

for (const { kind, how } of cases) {
  test(`${kind}, ${how} while stopped: it grants nothing, and start, verification and doctor name it`, async (t) => {
    const clock = startTestClock(t);
    const service = await startTestService(t);
    const token = await prepareFor(kind, service);
    const edit = await attack(kind, how, service, token, clock);
    const subject = await TARGETS[kind].subject(service.dataDir);
    await service.stop();
    await edit();
    const again = await startTestService(t, [], service.dataDir);
    assert.equal(await probe(kind, again, token), denied(kind, how));
    assert.deepEqual(await problemsOf(again), [{ subject, problem: PROBLEM[how] }]);
    const isHeldInMemory = isControl(kind);
    assert.equal(again.warnings.length, isHeldInMemory ? 1 : 0, again.warnings.join('\n'));
    if (isHeldInMemory) assert.ok(again.warnings[0]?.includes(subject));
    await again.stop();
  });

  if (STORE === 'postgres') {
    test(`${kind}, ${how} while nodes run: it grants nothing on either, and verification names it`, async (t) => {
      const clock = startTestClock(t);
      const service = await startTestService(t);
      const token = await prepareFor(kind, service);
      const other = await startAnotherNode(t, service);
      assert.equal(await probe(kind, other, token), 200);
      const edit = await attack(kind, how, service, token, clock);
      const subject = await TARGETS[kind].subject(service.dataDir);
      await edit();
      // Nodes read such rows if their epoch is later than the one they know.
      if (isControl(kind)) {
        await executeSql(service.dataDir, `UPDATE ${TARGETS[kind].tables[0]} SET epoch = 1000000`);
        for (const node of [service, other]) {
          await node.admin.put('/api/v1/policies/other', { principal: 'agent:x', resources: ['x'], actions: ['list'] });
        }
      }
      for (const node of [service, other]) {
        // A row that is in force and was only taken away stays in memory until it is read again.
        const isInMemory = isControl(kind) && how === 'taken away';
        if (!isInMemory) assert.equal(await probe(kind, node, token), denied(kind, how));
        assert.deepEqual(await problemsOf(node), [{ subject, problem: PROBLEM[how] }]);
      }
    });
  }
}

test('rows that do not answer to the log are in force again once they are made again', async (t) => {
  const service = await startTestService(t);
  await prepare(service);
  await service.stop();
  await executeSql(service.dataDir, 'DELETE FROM agents; DELETE FROM policies; DELETE FROM credentials');
  const again = await startTestService(t, [], service.dataDir);
  assert.match(again.warnings.join('\n'), /^2 rows .*policy:bot-0 \(removed\)/);
  await again.admin.delete('/api/v1/targets/prod/key');
  await executeSql(service.dataDir, 'DELETE FROM sessions; DELETE FROM usages');
  await prepareAgain(t, again);
});

async function prepareAgain(t: TestContext, service: TestService): Promise<void> {
  const { rmSync } = await import('node:fs');
  rmSync(`${service.dataDir}/agents/bot`, { recursive: true, force: true });
  const token = await prepare(service);
  assert.equal(await probe('credential', service, token), 200);
  const left = await problemsOf(service);
  // The session that was taken away is missing until it would have ended.
  assert.deepEqual(
    left.map(({ problem }: { problem: string }) => problem),
    ['missing'],
  );
  await service.stop();
  const third = await startTestService(t, [], service.dataDir);
  assert.deepEqual(third.warnings, []);
}
