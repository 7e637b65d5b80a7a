// Failed logins are limited per pair of agent and address, and per address. SOURCE:
// docs/decisions.md, "Agents and sessions".

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeHandoff, encodeState } from '../../src/crypto/sign-in-codes.ts';
import { encodeChallengeId, hashToken } from '../../src/crypto/tokens.ts';
import { ApiError } from '../../src/engine/errors.ts';
import type { Clock } from '../../src/ledger/clock.ts';
import { StoreError } from '../../src/store/errors.ts';
import { AssertionRequest } from '../../src/vault/operators/passkey-operations.ts';
import { requestAssertion, signInWithPasskey } from '../../src/vault/operators/passkeys.ts';
import type { OidcClient } from '../../src/vault/ports.ts';
import { issueChallenge } from '../../src/vault/sessions/login.ts';
import { LoginThrottle, type Settle } from '../../src/vault/sessions/login-throttle.ts';
import { redeemHandoff, signInWithIdentity } from '../../src/vault/sessions/sign-in.ts';
import type { Origin } from '../../src/vault/sessions/sign-in-operations.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { Authenticator } from '../kit/authenticator.ts';
import { enrol, logIn, newAgentKey, toName } from './agents-fixture.ts';
import { openVault, outcomeOf, readLog, settle as settleAll, withCommit } from './fixture.ts';

const NOW = Date.UTC(2026, 0, 31);
const ADDRESS = '192.0.2.1';

const at = (now: number): Clock => ({ now: () => now });

/** Makes failing attempts in sequence; returns the seconds to wait of each, 0 for an admitted one. */
async function tries(
  limiter: LoginThrottle,
  count: number,
  agent: string,
  address: string | null,
  now = NOW,
): Promise<number[]> {
  const waits: number[] = [];
  for (let i = 0; i < count; i++) {
    try {
      const settle = await limiter.admit(toName(agent), address, at(now));
      settle(true);
      waits.push(0);
    } catch (error) {
      assert.ok(error instanceof ApiError && error.code === 'RATE_LIMITED', String(error));
      waits.push(error.retryAfterSeconds ?? Number.NaN);
    }
  }
  return waits;
}

/** Makes one attempt under each of `count` names; returns how many were admitted. */
async function triesOfMany(limiter: LoginThrottle, count: number, stem: string, now = NOW): Promise<number> {
  let through = 0;
  for (let n = 0; n < count; n++) through += had(await tries(limiter, 1, `${stem}-${n}`, ADDRESS, now));
  return through;
}

const had = (waits: readonly number[]): number => waits.filter((wait) => wait === 0).length;

test('an attempt that ends with UNAVAILABLE is charged only at the identity provider', async () => {
  const limiter = new LoginThrottle();
  const fail = () => Promise.reject(new ApiError('UNAVAILABLE', 'out of reach', 1));
  const codeOf = (attempt: Promise<unknown>) => attempt.catch((error: ApiError) => error.code);
  for (let n = 0; n < 301; n++) assert.equal(await codeOf(limiter.run(null, ADDRESS, at(NOW), fail)), 'UNAVAILABLE');
  for (let n = 0; n < 300; n++)
    assert.equal(await codeOf(limiter.runAtProvider(ADDRESS, at(NOW), fail)), 'UNAVAILABLE');
  assert.equal(await codeOf(limiter.runAtProvider(ADDRESS, at(NOW), fail)), 'RATE_LIMITED');
  assert.equal(had(await tries(limiter, 1, 'ci', ADDRESS)), 1);
});

test('eight sign-ins of an address and 32 in all wait for a provider; more are rejected, and logins do not wait', async () => {
  const limiter = new LoginThrottle();
  const silent = Promise.withResolvers<void>();
  const outcomes: Promise<string>[] = [];
  const begin = (address: string): void =>
    void outcomes.push(outcomeOf(limiter.runAtProvider(address, at(NOW), () => silent.promise)));
  const addresses = [ADDRESS, '198.51.100.1', '198.51.100.2', '2001:db8::1'];
  for (const address of addresses) for (let n = 0; n < 9; n++) begin(address);
  begin('2001:db8:1::1');
  assert.equal(limiter.attempts.get('throttled'), 5);
  const settle = limiter.tryAdmit(null, ADDRESS, NOW);
  assert.ok(settle !== null);
  settle(false);
  silent.resolve();
  const ended = await Promise.all(outcomes);
  assert.equal(ended.filter((each) => each === 'ok').length, 32);
  assert.equal(ended.filter((each) => each === 'RATE_LIMITED').length, 5);
  assert.equal(await outcomeOf(limiter.runAtProvider(ADDRESS, at(NOW), async () => undefined)), 'ok');
});

test('60 attempts for one agent from one address may fail immediately, then one a second', async () => {
  const limiter = new LoginThrottle();
  assert.deepEqual(await tries(limiter, 62, 'ci', ADDRESS), [...Array<number>(60).fill(0), 1, 1]);
  for (const [later, expected] of [
    [999, 0],
    [1000, 1],
    [1999, 0],
    [4000, 3],
    [3_600_000, 60],
  ] as const) {
    assert.equal(had(await tries(limiter, 100, 'ci', ADDRESS, NOW + later)), expected, `${later} ms later`);
  }
});

test('300 attempts from one address may fail immediately, for any names, then ten a second', async () => {
  const limiter = new LoginThrottle();
  assert.equal(await triesOfMany(limiter, 400, 'a'), 300);
  assert.equal(await triesOfMany(limiter, 20, 'b', NOW + 99), 0);
  assert.equal(await triesOfMany(limiter, 20, 'c', NOW + 100), 1);
  assert.equal(await triesOfMany(limiter, 50, 'd', NOW + 2100), 20);
  assert.deepEqual(await tries(limiter, 1, 'e', ADDRESS, NOW + 2100), [1]);
});

test('failures from another address or of another agent do not limit a caller', async () => {
  const limiter = new LoginThrottle();
  await tries(limiter, 100, 'ci', ADDRESS);
  assert.deepEqual(await tries(limiter, 1, 'ci', '192.0.2.2'), [0]);
  assert.deepEqual(await tries(limiter, 1, 'other', ADDRESS), [0]);
  assert.deepEqual(await tries(limiter, 1, 'ci', null), [0]);
});

test('the agent’s name counts without regard to case', async () => {
  const limiter = new LoginThrottle();
  assert.equal(had(await tries(limiter, 40, 'ci', ADDRESS)), 40);
  assert.equal(had(await tries(limiter, 40, 'CI', ADDRESS)), 20);
});

test('rejected attempts are not charged to the address', async () => {
  const limiter = new LoginThrottle();
  await tries(limiter, 1000, 'ci', ADDRESS);
  assert.equal(await triesOfMany(limiter, 300, 'other'), 240);
});

test('a successful attempt is not charged and adds no tokens', async () => {
  const limiter = new LoginThrottle();
  for (let i = 0; i < 1000; i++) (await limiter.admit(toName('ci'), ADDRESS, at(NOW)))(false);
  const late = await limiter.admit(toName('ci'), ADDRESS, at(NOW));
  (await limiter.admit(toName('ci'), ADDRESS, at(NOW + 3_600_000)))(false);
  late(false);
  assert.equal(had(await tries(limiter, 100, 'ci', ADDRESS, NOW + 3_600_000)), 60);
});

test('no more attempts run concurrently than may fail; the others wait for their results', async () => {
  const limiter = new LoginThrottle();
  const underWay: Settle[] = [];
  const refused: unknown[] = [];
  for (let i = 0; i < 100; i++) {
    limiter.admit(toName('ci'), ADDRESS, at(NOW)).then(
      (settle) => underWay.push(settle),
      (fault) => refused.push(fault),
    );
  }
  await settleAll();
  assert.deepEqual([underWay.length, refused.length], [60, 0]);
  for (const settle of underWay.splice(0, 10)) settle(false);
  await settleAll();
  assert.deepEqual([underWay.length, refused.length], [60, 0]);
  for (const settle of underWay.splice(0)) settle(true);
  await settleAll();
  assert.deepEqual([underWay.length, refused.length], [0, 30]);
});

test('of IPv6 addresses the first 64 bits count, and IPv4 addresses differ', async () => {
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
    const limiter = new LoginThrottle();
    await tries(limiter, 60, 'ci', one);
    assert.equal(had(await tries(limiter, 1, 'ci', other)), isSame ? 0 : 1, `${one} and ${other}`);
  }
});

test('it keeps a bounded number of addresses and evicts the least recently used one', async () => {
  const limiter = new LoginThrottle();
  await tries(limiter, 60, 'ci', 'first');
  await tries(limiter, 60, 'ci', 'in use');
  for (let n = 0; n < 20_000; n++) {
    await tries(limiter, 1, 'ci', `address ${n}`);
    if (n % 1000 === 0) assert.equal(had(await tries(limiter, 1, 'ci', 'in use')), 0);
  }
  assert.equal(had(await tries(limiter, 1, 'ci', 'in use')), 0);
  assert.equal(had(await tries(limiter, 1, 'ci', 'first')), 1);
});

test('over the limit a valid signature is rejected too; from another address the agent can still log in', async (t) => {
  const vault = await openVault(t, { time: { wall: () => NOW, monotonic: () => 0 } });
  const [key, wrong] = [newAgentKey(), newAgentKey()];
  await enrol(vault, 'ci', key);
  for (let i = 0; i < 60; i++) assert.equal(await outcomeOf(logIn(vault, 'ci', wrong)), 'AUTH_FAILED');
  assert.equal(await outcomeOf(logIn(vault, 'ci', wrong)), 'RATE_LIMITED');
  assert.equal(await outcomeOf(logIn(vault, 'ci', key)), 'RATE_LIMITED');
  assert.equal(await outcomeOf(logIn(vault, 'ci', key, undefined, '198.51.100.1')), 'ok');
  const entries = (await readLog(vault.real)).filter((entry) => entry.event_type === 'auth.verify');
  assert.equal(entries.length, 61);
});

const PAGE = { origin: 'https://vault.example', rpId: 'vault.example' };
const OIDC: OidcClient = {
  issuer: 'https://login.example',
  label: 'login.example',
  authorizationUrl: async () => assert.fail('no sign-in begins'),
  redeem: async () => null,
};

/** Each way of signing in without a key, with a code of this vault that fails. */
const SIGN_INS: Readonly<Record<string, (vault: Vault, origin: Origin) => Promise<unknown>>> = {
  'a code that hands over a session': (vault, origin) => {
    const id = encodeChallengeId(vault.keys.challenge, NOW, false);
    return redeemHandoff(vault, origin, encodeHandoff(vault.keys.challenge, id, hashToken('lhs_of-no-session')));
  },
  'a passkey': (vault, origin) => {
    const { challengeId, options } = requestAssertion(vault, PAGE);
    const answer = new Authenticator().signIn({ ...options, rpId: PAGE.rpId }, PAGE);
    const body = { challenge_id: challengeId, response: answer };
    return signInWithPasskey(vault, origin, PAGE, AssertionRequest.parse(body));
  },
};

for (const [what, signIn] of Object.entries(SIGN_INS)) {
  test(`failed sign-ins with ${what} are charged to their address, and limited by it`, async (t) => {
    const vault = await openVault(t, { time: { wall: () => NOW, monotonic: () => 0 } });
    const outcome = (remoteAddr: string) => outcomeOf(signIn(vault, { requestId: 'r', remoteAddr }));
    assert.equal(await triesOfMany(vault.loginThrottle, 299, 'a'), 299);
    assert.deepEqual([await outcome(ADDRESS), await outcome(ADDRESS)], ['AUTH_FAILED', 'RATE_LIMITED']);
    assert.equal(await outcome('198.51.100.1'), 'AUTH_FAILED');
  });
}

test('failed sign-ins with an identity are limited for their address, and are not charged to its logins', async (t) => {
  const vault = await openVault(t, { time: { wall: () => NOW, monotonic: () => 0 } });
  const outcome = (remoteAddr: string) => {
    const state = encodeState(vault.keys.challenge, encodeChallengeId(vault.keys.challenge, NOW, false), PAGE.origin);
    const request = { code: 'a code', state };
    return outcomeOf(signInWithIdentity(vault, OIDC, { requestId: 'r', remoteAddr }, PAGE.origin, request));
  };
  assert.equal(await triesOfMany(vault.loginThrottle, 300, 'a'), 300);
  for (let n = 0; n < 300; n++) assert.equal(await outcome(ADDRESS), 'AUTH_FAILED');
  assert.equal(await outcome(ADDRESS), 'RATE_LIMITED');
  assert.equal(await outcome('198.51.100.1'), 'AUTH_FAILED');
  assert.deepEqual(await tries(vault.loginThrottle, 1, 'ci', '198.51.100.1'), [0]);
});

test('challenges and successful logins are not charged', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  for (let i = 0; i < 70; i++) await issueChallenge(vault, toName('ci'));
  for (let i = 0; i < 80; i++) assert.equal(await outcomeOf(logIn(vault, 'ci', key)), 'ok');
});

test('a login that could not be recorded is not charged as a failure', async (t) => {
  let isFull = false;
  const vault = await openVault(t, {
    inFront: withCommit(async (_batch, commit) => {
      if (isFull) throw new StoreError('unavailable', 'a made-up full disk');
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
