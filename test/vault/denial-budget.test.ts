// Denials of one agent beyond its budget are 429 and not recorded.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { as, enrol, logIn, newAgentKey } from './agents-fixture.ts';
import { get, type OpenedVault, openVault, outcomeOf, readLog, verify } from './fixture.ts';

const BUDGET = 5;

async function outcomes(vault: OpenedVault, token: string, times: number): Promise<string[]> {
  const found: string[] = [];
  for (let n = 0; n < times; n++) found.push(await outcomeOf(get(vault, `secret/${n}`, await as(vault, token))));
  return found;
}

const denialsOf = async ({ real }: OpenedVault, name: string) =>
  (await readLog(real)).filter(({ result, agent_name }) => result === 'denied' && agent_name === name);

test('denials beyond the budget of an agent are 429, counted and not recorded, until a minute has passed', async (t) => {
  let offset = 0;
  const time = { wall: () => 1_800_000_000_000 + offset, monotonic: () => offset };
  const vault = await openVault(t, { denialsPerMinute: BUDGET, time });
  const key = newAgentKey();
  for (const name of ['loud', 'quiet']) await enrol(vault, name, key);
  const [loud, quiet] = [(await logIn(vault, 'loud', key)).token.reveal(), (await logIn(vault, 'quiet', key)).token];
  const recorded = Array<string>(BUDGET).fill('ACCESS_DENIED');
  assert.deepEqual(await outcomes(vault, loud, BUDGET + 2), [...recorded, 'RATE_LIMITED', 'RATE_LIMITED']);
  assert.equal((await denialsOf(vault, 'loud')).length, BUDGET);
  assert.equal(vault.denials.unrecordedDenials, 2);
  // The budget is each agent's own, and not the administrator's.
  assert.deepEqual(await outcomes(vault, quiet.reveal(), BUDGET), recorded);
  for (let n = 0; n < 2 * BUDGET; n++) assert.equal(await outcomeOf(get(vault, 'none')), 'NOT_FOUND');

  offset += 60_000;
  assert.deepEqual(await outcomes(vault, loud, BUDGET), recorded);
  assert.equal((await verify(vault)).isValid, true);
});
