// The vault's clock: a jump back extends no lease, and no entry is older than the previous one.

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { startClock, type TimeSource } from '../../src/ledger/clock.ts';
import { retrieveCredential } from '../../src/vault/credentials/credentials.ts';
import { statusOf } from '../../src/vault/leases/lease.ts';
import { readLease, renewLease } from '../../src/vault/leases/lease-operations.ts';
import { createPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { issueChallenge, login } from '../../src/vault/sessions/login.ts';
import { as, enrol, logIn, newAgentKey, toName } from '../vault/agents-fixture.ts';
import { admin, get, openVault, outcomeOf, put, readLog, toPath, verify } from '../vault/fixture.ts';

const NOW = Date.UTC(2026, 0, 31);
const HOUR_MS = 3_600_000;

/** A time source that the test moves. */
class Hands implements TimeSource {
  wallAt = NOW;
  monotonicAt = 1000;
  wall = () => this.wallAt;
  monotonic = () => this.monotonicAt;

  /** Time passes, and an operator sets the wall clock by `jump`. */
  pass(milliseconds: number, jump = 0): void {
    this.wallAt += milliseconds + jump;
    this.monotonicAt += milliseconds;
  }
}

test('the clock equals the wall clock while that goes forward, and follows it when it is set forward', () => {
  const hands = new Hands();
  const clock = startClock(0, hands);
  assert.equal(clock.now(), NOW);
  hands.pass(250);
  assert.equal(clock.now(), NOW + 250);
  hands.pass(0, HOUR_MS);
  assert.equal(clock.now(), NOW + 250 + HOUR_MS);
});

test('after the wall clock is moved back, the clock advances with the monotonic clock until the wall clock has caught up', () => {
  const hands = new Hands();
  const clock = startClock(0, hands);
  clock.now();
  hands.pass(0, -HOUR_MS);
  assert.equal(clock.now(), NOW);
  hands.pass(30_000);
  assert.equal(clock.now(), NOW + 30_000);
  hands.pass(HOUR_MS, HOUR_MS);
  assert.equal(clock.now(), hands.wallAt);
});

test('it starts at the latest known time and advances from there', () => {
  const hands = new Hands();
  const clock = startClock(NOW + 60_000, hands);
  assert.equal(clock.now(), NOW + 60_000);
  hands.pass(5000);
  assert.equal(clock.now(), NOW + 65_000);
});

test('for any jumps it never goes back, is never slower than the monotonic clock, and returns whole milliseconds', () => {
  const step = fc.tuple(fc.double({ min: 0, max: 5000, noNaN: true }), fc.integer({ min: -10_000, max: 10_000 }));
  fc.assert(
    fc.property(fc.array(step), fc.integer({ min: -5000, max: 5000 }), (steps, ahead) => {
      const hands = new Hands();
      const clock = startClock(NOW + ahead, hands);
      let latest = clock.now();
      const [from, began] = [latest, hands.monotonicAt];
      for (const [passed, jump] of steps) {
        hands.pass(passed, jump);
        const now = clock.now();
        assert.ok(Number.isInteger(now) && now >= latest && now >= Math.floor(hands.wallAt));
        assert.ok(now >= Math.floor(from + (hands.monotonicAt - began) - 0.001));
        latest = now;
      }
    }),
  );
});

test('a wall clock moved back extends no lease, no session and no challenge', async (t) => {
  const hands = new Hands();
  const vault = await openVault(t, { time: hands });
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  await put(vault, 'prod/key', 'v');
  const grant = { principal: 'agent:ci', resources: ['prod/*'], actions: ['retrieve'], max_ttl: 300 };
  await vault.ledger.submit(createPolicy.operation(admin(), Policy.parse({ ...grant, name: 'p' })));
  const token = (await logIn(vault, 'ci', key)).token.reveal();
  const { challengeId, nonce } = await issueChallenge(vault, toName('ci'));
  const request = { path: toPath('prod/key'), version: null, ttlSeconds: null };
  const { leaseId, expiresAt } = await retrieveCredential(vault, await as(vault, token), request);
  assert.equal(expiresAt, NOW + 300_000);

  hands.pass(60_000, -2 * HOUR_MS);
  const proof = { challengeId, agentName: toName('ci'), signature: sign(null, nonce, key.privateKey) };
  assert.equal(await outcomeOf(login(vault, { requestId: 'late', remoteAddr: null }, proof)), 'AUTH_FAILED');
  hands.pass(239_999);
  const before = await vault.ledger.submit(readLease(admin(), leaseId));
  assert.equal(statusOf(before.lease, before.now), 'active');
  hands.pass(1);
  const after = await vault.ledger.submit(readLease(admin(), leaseId));
  assert.equal(statusOf(after.lease, after.now), 'expired');
  assert.equal(await outcomeOf(vault.ledger.submit(renewLease(await as(vault, token), leaseId))), 'LEASE_ENDED');
  hands.pass(HOUR_MS - 300_001);
  const caller = await as(vault, token);
  hands.pass(1);
  assert.equal(await outcomeOf(as(vault, token)), 'SESSION_EXPIRED');
  assert.equal(await outcomeOf(get(vault, 'prod/key', caller)), 'SESSION_EXPIRED');
});

test('no entry is older than the previous one, in one run and across restarts with a clock behind', async (t) => {
  const hands = new Hands();
  let vault = await openVault(t, { time: hands });
  for (const jump of [0, -HOUR_MS, 5000, -24 * HOUR_MS]) {
    hands.pass(10, jump);
    await put(vault, 'a');
    hands.pass(1, 0);
    await outcomeOf(get(vault, 'none'));
    vault = await openVault(t, { directory: vault.directory, time: hands });
    await get(vault, 'a');
  }
  const times = (await readLog(vault.real)).map(({ timestamp }) => timestamp);
  assert.deepEqual(times, times.toSorted());
  assert.ok(times.every((time) => time >= new Date(NOW).toISOString()));
  assert.equal((await verify(vault)).isValid, true);
});

test('a lease that had ended when the vault was swept stays ended when the clock is behind at the next start', async (t) => {
  const hands = new Hands();
  const vault = await openVault(t, { time: hands });
  await put(vault, 'a');
  const request = { path: toPath('a'), version: null, ttlSeconds: null };
  const { leaseId, expiresAt } = await retrieveCredential(vault, admin(), request);
  hands.pass(expiresAt - NOW);
  await vault.real.sweep(vault.clock.now(), 10);
  hands.pass(0, -4 * 60_000);
  const again = await openVault(t, { directory: vault.directory, time: hands });
  const { lease, now } = await again.ledger.submit(readLease(admin(), leaseId));
  assert.equal(statusOf(lease, now), 'expired');
});
