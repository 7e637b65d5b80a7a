// The hourly budgets of an agent: beyond them 429 with the seconds to wait, and nothing is written.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ApiError } from '../../src/engine/errors.ts';
import type { BudgetLimits } from '../../src/ledger/budgets.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { storeCredential } from '../../src/vault/credentials/credentials.ts';
import { createPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { as, enrol, logIn, newAgentKey } from './agents-fixture.ts';
import { admin, get, type OpenedVault, openVault, outcomeOf, put, readLog, toPath, verify } from './fixture.ts';

const HOUR_MS = 3_600_000;

async function openBudgeted(t: TestContext, budgets: Partial<BudgetLimits>) {
  let offset = 0;
  const time = { wall: () => 1_800_000_000_000 + offset, monotonic: () => offset };
  const vault = await openVault(t, { budgets, time });
  const key = newAgentKey();
  for (const name of ['one', 'two']) await enrol(vault, name, key);
  const policy = { name: 'all', principal: 'agent:*', resources: ['own/*'], actions: ['retrieve', 'store'] };
  await vault.ledger.submit(createPolicy.operation(admin(), Policy.parse(policy)));
  const advance = (ms: number): void => {
    offset += ms;
  };
  return { vault, key, advance };
}

/** Repeats until a rejection; resolves to the number of successes. */
async function countUntilLimited(work: () => Promise<unknown>): Promise<number> {
  for (let times = 0; times < 100; times++) {
    const refusal = await work().then(
      () => null,
      (error: unknown) => error,
    );
    if (refusal === null) continue;
    assert.ok(refusal instanceof ApiError, String(refusal));
    assert.equal(refusal.code, 'RATE_LIMITED');
    assert.ok((refusal.retryAfterSeconds ?? 0) >= 1);
    return times;
  }
  throw new Error('it was never limited');
}

test('sessions: wrong signatures are not charged, and the budget is full again after an hour', async (t) => {
  const { vault, key, advance } = await openBudgeted(t, { sessionsPerHour: 3 });
  const wrong = newAgentKey();
  for (let n = 0; n < 10; n++) assert.equal(await outcomeOf(logIn(vault, 'one', wrong)), 'AUTH_FAILED');
  assert.equal(await countUntilLimited(() => logIn(vault, 'one', key)), 3);
  const entries = (await readLog(vault.real)).length;
  assert.equal(await outcomeOf(logIn(vault, 'one', key)), 'RATE_LIMITED');
  assert.equal((await readLog(vault.real)).length, entries);
  assert.equal(await outcomeOf(logIn(vault, 'two', key)), 'ok');
  advance(HOUR_MS);
  assert.equal(await countUntilLimited(() => logIn(vault, 'one', key)), 3);
});

test('leases: denied retrievals are not charged, and the administrator is not limited', async (t) => {
  const { vault, key } = await openBudgeted(t, { leasesPerHour: 4 });
  await put(vault, 'own/key');
  const [one, two] = [await logIn(vault, 'one', key), await logIn(vault, 'two', key)];
  const caller = await as(vault, one.token.reveal());
  for (let n = 0; n < 10; n++) assert.equal(await outcomeOf(get(vault, 'other', caller)), 'ACCESS_DENIED');
  assert.equal(await countUntilLimited(() => get(vault, 'own/key', caller)), 4);
  assert.equal(await outcomeOf(get(vault, 'own/key', await as(vault, two.token.reveal()))), 'ok');
  for (let n = 0; n < 10; n++) assert.equal(await outcomeOf(get(vault, 'own/key')), 'ok');
});

test('stored bytes: the sizes of the agent’s values count, and those of other agents do not', async (t) => {
  const { vault, key } = await openBudgeted(t, { storedMibPerHour: 1 });
  const [one, two] = [await logIn(vault, 'one', key), await logIn(vault, 'two', key)];
  const value = 'x'.repeat(200_000);
  const caller = await as(vault, one.token.reveal());
  assert.equal(await countUntilLimited(() => put(vault, 'own/large', value, caller)), 6);
  assert.equal(await outcomeOf(put(vault, 'own/large', value, await as(vault, two.token.reveal()))), 'ok');
  assert.equal(await outcomeOf(put(vault, 'own/large', value)), 'ok');
});

test('stored bytes: a small value costs its rows and its description too', async (t) => {
  const { vault, key } = await openBudgeted(t, { storedMibPerHour: 1 });
  const countStores = async (agent: string, description: string): Promise<number> => {
    const { token } = await logIn(vault, agent, key);
    const caller = await as(vault, token.reveal());
    await put(vault, 'own/large', 'x'.repeat(1_000_000), caller);
    const small = { path: toPath('own/small'), value: new Secret('x'), type: null, description, onlyIfNew: false };
    return countUntilLimited(() => storeCredential(vault, caller, small));
  };
  const [bare, described] = [await countStores('one', ''), await countStores('two', 'd'.repeat(1024))];
  assert.ok(bare > 20 && bare < 50 && described < 0.6 * bare, `${bare} and ${described}`);
});

// Denials of one agent beyond its budget are 429 and not recorded.

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
