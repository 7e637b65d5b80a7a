// Guessing is slowed: failed verifies are limited per agent and address together, and per address. SOURCE: decisions,
// "Authentication".

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreFailure } from '../../src/store/port.ts';
import { FailureLimiter } from '../../src/vault/limiter.ts';
import { issueChallenge } from '../../src/vault/sessions.ts';
import { enrol, logIn, newAgentKey, toName } from './agents.ts';
import { openVault, outcomeOf, readLog, withCommit } from './opened.ts';

const NOW = Date.UTC(2026, 0, 31);
const ADDRESS = '192.0.2.1';

/** Tries that all fail; tells the seconds to wait where one is refused, else 0. */
function tries(limiter: FailureLimiter, count: number, agent: string, address: string | null, now = NOW): number[] {
  return Array.from({ length: count }, () => {
    try {
      limiter.tryAdmit(toName(agent), address, now)?.(true);
      return 0;
    } catch (error) {
      assert.ok(error instanceof Error && 'retryAfterSeconds' in error && 'code' in error);
      assert.equal(error.code, 'RATE_LIMITED');
      return Number(error.retryAfterSeconds);
    }
  });
}

const had = (waits: readonly number[]): number => waits.filter((wait) => wait === 0).length;

test('of one agent from one address 60 tries may fail at once, then one a second', () => {
  const limiter = new FailureLimiter();
  assert.deepEqual(tries(limiter, 62, 'ci', ADDRESS), [...Array<number>(60).fill(0), 1, 1]);
  assert.equal(had(tries(limiter, 5, 'ci', ADDRESS, NOW + 999)), 0);
  assert.equal(had(tries(limiter, 5, 'ci', ADDRESS, NOW + 1000)), 1);
  assert.equal(had(tries(limiter, 5, 'ci', ADDRESS, NOW + 1999)), 0);
  assert.equal(had(tries(limiter, 5, 'ci', ADDRESS, NOW + 4000)), 3);
  assert.equal(had(tries(limiter, 100, 'ci', ADDRESS, NOW + 3_600_000)), 60);
});

test('from one address 300 tries may fail at once, whatever the names, then ten a second', () => {
  const limiter = new FailureLimiter();
  const spread = (count: number, now: number): number =>
    had(Array.from({ length: count }, (_, n) => tries(limiter, 1, `ci-${now}-${n}`, ADDRESS, now)[0] ?? -1));
  assert.equal(spread(400, NOW), 300);
  assert.equal(spread(20, NOW + 99), 0);
  assert.equal(spread(20, NOW + 100), 1);
  assert.equal(spread(50, NOW + 2100), 20);
});

test('nobody is limited by what comes from elsewhere, nor by what another agent does', () => {
  const limiter = new FailureLimiter();
  tries(limiter, 100, 'ci', ADDRESS);
  assert.deepEqual(tries(limiter, 1, 'ci', '192.0.2.2'), [0]);
  assert.deepEqual(tries(limiter, 1, 'other', ADDRESS), [0]);
  assert.deepEqual(tries(limiter, 1, 'ci', null), [0]);
});

test('the name counts in any spelling of its case', () => {
  const limiter = new FailureLimiter();
  assert.equal(had(tries(limiter, 40, 'ci', ADDRESS)) + had(tries(limiter, 40, 'CI', ADDRESS)), 60);
});

test('tries that were refused cost the address nothing', () => {
  const limiter = new FailureLimiter();
  tries(limiter, 1000, 'ci', ADDRESS);
  const others = Array.from({ length: 300 }, (_, n) => tries(limiter, 1, `other-${n}`, ADDRESS)[0] ?? -1);
  assert.equal(had(others), 240);
});

test('what succeeds costs nothing, and there are never more places than at the beginning', () => {
  const limiter = new FailureLimiter();
  for (let i = 0; i < 1000; i++) limiter.tryAdmit(toName('ci'), ADDRESS, NOW)?.(false);
  assert.equal(had(tries(limiter, 100, 'ci', ADDRESS)), 60);
  const late = new FailureLimiter();
  const settle = late.tryAdmit(toName('ci'), ADDRESS, NOW);
  late.tryAdmit(toName('ci'), ADDRESS, NOW + 3_600_000)?.(false);
  settle?.(false);
  assert.equal(had(tries(late, 100, 'ci', ADDRESS, NOW + 3_600_000)), 60);
});

test('tries under way hold their places: no more than 60 are checked at once', () => {
  const limiter = new FailureLimiter();
  const underWay = Array.from({ length: 60 }, () => limiter.tryAdmit(toName('ci'), ADDRESS, NOW));
  assert.ok(underWay.every((settle) => settle !== null));
  assert.equal(limiter.tryAdmit(toName('ci'), ADDRESS, NOW), null);
  for (const settle of underWay) settle?.(true);
  assert.throws(() => limiter.tryAdmit(toName('ci'), ADDRESS, NOW), { code: 'RATE_LIMITED' });
});

for (const [one, other, isSame] of [
  ['2001:db8::1', '2001:db8::2', true],
  ['2001:db8::1', '2001:0db8:0:0:ffff:ffff:ffff:ffff', true],
  ['2001:db8:0:1::1', '2001:db8:0:1:8000::', true],
  ['2001:DB8::1', '2001:db8::1', true],
  ['2001:db8::1', '2001:db8:0:1::1', false],
  ['2001:db8:1::', '2001:db8:2::', false],
  ['::1', '2001:db8::1', false],
  ['fe80::1%eth0', 'fe80::2%eth0', true],
  ['192.0.2.1', '192.0.2.2', false],
] as const) {
  test(`${one} and ${other} are ${isSame ? 'one address' : 'two addresses'}: of IPv6 the first 64 bits count`, () => {
    const limiter = new FailureLimiter();
    tries(limiter, 60, 'ci', one);
    assert.equal(had(tries(limiter, 1, 'ci', other)), isSame ? 0 : 1);
  });
}

test('it keeps a bounded number of addresses, and forgets the one that was not seen for the longest time', () => {
  const limiter = new FailureLimiter();
  tries(limiter, 60, 'ci', 'first');
  tries(limiter, 60, 'ci', 'in use');
  for (let n = 0; n < 20_000; n++) {
    tries(limiter, 1, 'ci', `address ${n}`);
    if (n % 1000 === 0) assert.equal(had(tries(limiter, 1, 'ci', 'in use')), 0);
  }
  assert.equal(had(tries(limiter, 1, 'ci', 'in use')), 0);
  assert.equal(had(tries(limiter, 1, 'ci', 'first')), 1);
});

test('over the limit no signature helps any more; from elsewhere the agent still gets in', async (t) => {
  const vault = await openVault(t, { time: { wall: () => NOW, monotonic: () => 0 } });
  const [key, wrong] = [newAgentKey(), newAgentKey()];
  await enrol(vault, 'ci', key);
  for (let i = 0; i < 60; i++) assert.equal(await outcomeOf(logIn(vault, 'ci', wrong)), 'AUTH_FAILED');
  assert.equal(await outcomeOf(logIn(vault, 'ci', wrong)), 'RATE_LIMITED');
  assert.equal(await outcomeOf(logIn(vault, 'ci', key)), 'RATE_LIMITED');
  assert.equal(await outcomeOf(logIn(vault, 'ci', key, undefined, '198.51.100.1')), 'ok');
  const entries = (await readLog(vault.sqlite)).filter((entry) => entry.event_type === 'auth.verify');
  assert.equal(entries.length, 61);
});

test('challenges and logins that succeed cost nothing, one after another', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  for (let i = 0; i < 500; i++) issueChallenge(vault, toName('ci'));
  for (let i = 0; i < 80; i++) assert.equal(await outcomeOf(logIn(vault, 'ci', key)), 'ok');
});

test('logins that succeed cost nothing, however many come at once', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => outcomeOf(logIn(vault, 'ci', key))));
  assert.deepEqual(new Set(outcomes), new Set(['ok']));
});

test('what could not be recorded is no failed login', async (t) => {
  let isFull = false;
  const vault = await openVault(t, {
    inFront: withCommit(async (_batch, commit) => {
      if (isFull) throw new StoreFailure('unavailable', 'a made-up full disk');
      await commit();
    }),
  });
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  isFull = true;
  for (let i = 0; i < 70; i++) assert.equal(await outcomeOf(logIn(vault, 'ci', key)), 'UNAVAILABLE');
  isFull = false;
  assert.equal(await outcomeOf(logIn(vault, 'ci', key)), 'ok');
});
