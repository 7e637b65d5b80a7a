// Denials of one agent beyond its budget are denied like others, and recorded by a summary with their number.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { StoreError } from '../../src/store/errors.ts';
import { as, enrol, logIn, newAgentKey } from './agents-fixture.ts';
import { get, type OpenedVault, openVault, outcomeOf, put, readLog, verify, withCommit } from './fixture.ts';

const BUDGET = 5;
const TRIES = 20;

/** A vault whose clock the test moves, and whose next commits may fail. */
async function openLimited(t: TestContext) {
  let offset = 0;
  let isFailing = false;
  const vault = await openVault(t, {
    denialsPerMinute: BUDGET,
    time: { wall: () => 1_800_000_000_000 + offset, monotonic: () => offset },
    inFront: withCommit(async (_batch, commit) => {
      if (isFailing) throw new StoreError('unavailable', 'a made-up failure');
      await commit();
    }),
  });
  const key = newAgentKey();
  for (const name of ['loud', 'quiet']) await enrol(vault, name, key);
  const [loud, quiet] = [await logIn(vault, 'loud', key), await logIn(vault, 'quiet', key)];
  return {
    vault,
    loud: loud.token.reveal(),
    quiet: quiet.token.reveal(),
    advance: (ms: number) => {
      offset += ms;
    },
    fail: (isNow: boolean) => {
      isFailing = isNow;
    },
  };
}

async function denied(vault: OpenedVault, token: string, times: number): Promise<string[]> {
  const outcomes: string[] = [];
  for (let n = 0; n < times; n++) outcomes.push(await outcomeOf(get(vault, `secret/${n}`, await as(vault, token))));
  return outcomes;
}

const denialsOf = async ({ real }: OpenedVault, name: string) =>
  (await readLog(real)).filter(({ result, agent_name }) => result === 'denied' && agent_name === name);

test('denials beyond the budget are still denied, and one summary has their number', async (t) => {
  const { vault, loud, quiet, advance } = await openLimited(t);
  assert.deepEqual(await denied(vault, loud, TRIES), Array<string>(TRIES).fill('ACCESS_DENIED'));
  assert.equal((await denialsOf(vault, 'loud')).length, BUDGET);
  // The budget is each agent's own, and not the administrator's.
  await denied(vault, quiet, BUDGET);
  assert.equal((await denialsOf(vault, 'quiet')).length, BUDGET);
  for (let n = 0; n < 2 * BUDGET; n++) assert.equal(await outcomeOf(get(vault, 'none')), 'NOT_FOUND');
  assert.equal((await readLog(vault.real)).filter(({ result }) => result === 'not_found').length, 2 * BUDGET);

  advance(11_000);
  await put(vault, 'any');
  const summary = (await denialsOf(vault, 'loud')).at(-1);
  assert.deepEqual([summary?.resource, summary?.action], ['*', 'retrieve']);
  assert.equal(
    summary?.reason,
    `${TRIES - BUDGET} more denials of this agent within 11 s were not recorded individually`,
  );
  await put(vault, 'any');
  assert.equal((await denialsOf(vault, 'loud')).length, BUDGET + 1);
  advance(60_000);
  await denied(vault, loud, BUDGET);
  assert.equal((await denialsOf(vault, 'loud')).length, 2 * BUDGET + 1);
  assert.equal((await verify(vault)).isValid, true);
});

test('a summary whose commit fails is recorded by a later batch', async (t) => {
  const { vault, loud, advance, fail } = await openLimited(t);
  await denied(vault, loud, TRIES);
  advance(11_000);
  fail(true);
  assert.equal(await outcomeOf(put(vault, 'any')), 'UNAVAILABLE');
  fail(false);
  await put(vault, 'any');
  const reasons = (await denialsOf(vault, 'loud')).map(({ reason }) => reason ?? '');
  assert.equal(reasons.filter((reason) => reason.startsWith(`${TRIES - BUDGET} more denials`)).length, 1);
});

test('every summary is recorded when the service stops', async (t) => {
  const { vault, loud } = await openLimited(t);
  await denied(vault, loud, TRIES);
  await put(vault, 'any');
  assert.equal((await denialsOf(vault, 'loud')).length, BUDGET);
  vault.denials.close();
  await put(vault, 'any');
  assert.equal((await denialsOf(vault, 'loud')).length, BUDGET + 1);
});
