/** Contract: sweeping, in bounded steps, deletes nothing that is still needed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActorName, AgentId, CredentialId } from '../../src/core/names.ts';
import { readEntries, readHead } from '../../src/store/audit-log.ts';
import type { Store } from '../../src/store/port.ts';
import { isDeregistered, readHeldRows, readHighWaterTime } from '../../src/store/vault-metadata.ts';
import { ENDED_LEASE_RETENTION_MS, isWithinRetention, type Lease } from '../../src/vault/leases/lease.ts';
import { MAX_TTL_SECONDS } from '../../src/vault/policies/policy.ts';
import {
  aCredential,
  aLease,
  anAgent,
  anEntry,
  anOperator,
  aPolicy,
  aSession,
  asChallenge,
  commit,
  find,
  headAt,
  KEY_CHECK,
  KEYS,
  leased,
  marked,
  stored,
  storedPut,
  T0,
  versioned,
} from './rows.ts';
import { listLeases } from './scan.ts';
import type { Subject } from './store.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = MAX_TTL_SECONDS * 1000;
/** Far more than needed, so that sweeping that does not end fails instead of hanging. */
const MANY_STEPS = 10_000;

/** Sweeps until no rows are due; resolves to the number of rows of each step. `watch` is called between steps. */
export async function sweepInSteps(
  store: Store,
  now: number,
  limit: number,
  watch: (removed: number) => Promise<void> = async () => undefined,
): Promise<number[]> {
  const steps: number[] = [];
  for (let isDone = false; !isDone; ) {
    assert.ok(steps.length < MANY_STEPS, 'sweeping does not come to an end');
    const swept = await store.sweep(now, limit);
    assert.ok(swept.removed <= limit, `${swept.removed} rows in a step`);
    await watch(swept.removed);
    steps.push(swept.removed);
    isDone = swept.isDone;
  }
  return steps;
}

export const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

/** How many rows went. */
export const sweepAll = async (store: Store, now: number, limit = 10): Promise<number> =>
  sum(await sweepInSteps(store, now, limit));

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
export const leasesOf = async (store: Store, leases: readonly Lease[]): Promise<readonly Lease[]> =>
  (
    await find(
      store,
      leases.map(({ id }) => ({ lease: id })),
    )
  ).leases;

export function sweepContract({ name, newPlace, newVault }: Subject): void {
  test(`${name}: a step deletes at most the given number of rows, returns how many, and steps come to an end`, async (t) => {
    const store = await newVault(t);
    const [old, now] = [T0 + 1, T0 + 3 * YEAR_MS];
    const leases = numbers(25).map((seq) => aLease(seq, { expiresAt: old }));
    await commit(store, {
      changes: [
        ...leases.map(leased),
        ...numbers(25).map((n) => storedPut('session', aSession(n, { expiresAt: old }))),
        ...numbers(25).map((n) => ({ kind: 'consumeChallenge' as const, id: asChallenge(n), expiresAt: old })),
        ...numbers(25).map((n) => marked(100 + n, 'agent-9' as AgentId, null)),
      ],
    });
    const keys = numbers(25).map((n) => ({
      lease: aLease(n).id,
      session: aSession(n).tokenHash,
      challenge: asChallenge(n),
    }));
    const left = async () => {
      const { leases: some, rows, spentChallenges } = await find(store, keys);
      return some.length + rows.session.length + spentChallenges.length;
    };
    let before = await left();
    assert.equal(before, 75);
    const steps = await sweepInSteps(store, now, 10, async (removed) => {
      const after = await left();
      // Marks are not among those that are looked for.
      assert.ok(removed >= before - after, `${before - after} rows were deleted, and ${removed} reported`);
      before = after;
    });
    assert.equal(before, 0);
    assert.equal(sum(steps), 100);
    // WHY not one step: on a busy machine a step may end before it has looked at every kind.
    assert.equal(await sweepAll(store, now), 0);
    assert.equal(await store.run(isDeregistered('agent-9' as AgentId)), false);
  });

  test(`${name}: valid sessions and challenges, and sessions that ended recently, stay`, async (t) => {
    const store = await newVault(t);
    const now = T0 + YEAR_MS;
    const sessions = [now + HOUR_MS, now + 1, now - HOUR_MS].map((expiresAt, n) => aSession(n, { expiresAt }));
    const gone = aSession(9, { expiresAt: now - 30 * DAY_MS });
    const challenges = [now + 60_000, now].map((expiresAt, n) => ({ id: asChallenge(n), expiresAt }));
    const spent = { id: asChallenge(9), expiresAt: now - DAY_MS };
    await commit(store, {
      changes: [
        ...[...sessions, gone].map((session) => storedPut('session', session)),
        ...[...challenges, spent].map((each) => ({ kind: 'consumeChallenge' as const, ...each })),
      ],
    });
    assert.equal(await sweepAll(store, now), 2);
    const all = [...sessions, gone].map(({ tokenHash }) => ({ session: tokenHash }));
    const found = await find(store, [...all, ...[...challenges, spent].map(({ id }) => ({ challenge: id }))]);
    assert.deepEqual(found.rows.session, sessions);
    assert.deepEqual(
      found.spentChallenges,
      challenges.map(({ id }) => id),
    );
  });

  test(`${name}: leases stay while they are active or listed, with every bulk revocation that applies to them`, async (t) => {
    const store = await newVault(t);
    const now = T0 + 2 * YEAR_MS;
    const agents = ['agent-1', 'agent-2', 'agent-3'] as AgentId[];
    const weekAgo = now - ENDED_LEASE_RETENTION_MS;
    // Old and new, among each other: an interval of a year, ends from long ago to far away.
    const leases = numbers(60).map((seq) =>
      aLease(seq, {
        agentId: agents[seq % 3] ?? ('agent-1' as AgentId),
        agentName: `ci-${seq % 3}` as ActorName,
        credentialId: `of ${seq % 4}` as CredentialId,
        issuedAt: now - YEAR_MS,
        expiresAt: [now + YEAR_MS, now + 1, now, weekAgo + 1, weekAgo, now - 30 * DAY_MS][seq % 6] ?? now,
      }),
    );
    const mark = (seq: number, agentId: AgentId | null, credentialId: CredentialId | null, revokedAt: number) => ({
      kind: 'revokeMatching' as const,
      revocation: { seq, agentId, credentialId, kind: null, revokedAt },
    });
    await commit(store, {
      changes: [
        ...leases.slice(0, 20).map(leased),
        mark(20_000, agents[1] ?? null, null, now - YEAR_MS + 10),
        ...leases.slice(20).map(leased),
        mark(30_000, null, 'of 2' as CredentialId, weekAgo + 5),
        mark(40_000, agents[2] ?? null, 'of 1' as CredentialId, now - 5),
      ],
    });
    const query = { agentId: null, agentName: null, path: null, status: null, now };
    const listed = await listLeases(store, query);
    const active = await listLeases(store, { ...query, status: 'active' });
    assert.ok(active.length > 0 && listed.some(({ revokedAt }) => revokedAt !== null) && listed.length < 60);

    const swept = await sweepAll(store, now);
    // A revoked lease may stay for as long as its original lifetime.
    const ended = leases.filter(({ expiresAt }) => expiresAt <= weekAgo).length;
    assert.ok(swept >= ended && swept <= 60 - listed.length, `${swept} of ${ended} to ${60 - listed.length}`);

    assert.deepEqual(await listLeases(store, query), listed);
    const left = await leasesOf(store, leases);
    assert.equal(left.length, 60 - swept);
    assert.deepEqual(
      left.filter((lease) => isWithinRetention(lease, now)),
      listed.toReversed(),
    );
    assert.deepEqual(await listLeases(store, { ...query, status: 'active' }), active);
  });

  test(`${name}: a bulk revocation outlives the longest lease to which it can apply`, async (t) => {
    const store = await newVault(t);
    const revokedAt = T0 + 10;
    const lease = aLease(1, { issuedAt: T0, expiresAt: T0 + YEAR_MS });
    const { id } = anAgent(1);
    const mark = { seq: 2, agentId: id, credentialId: null, kind: null, revokedAt };
    await commit(store, { changes: [leased(lease), { kind: 'revokeMatching', revocation: mark }] });
    await store.sweep(lease.expiresAt, 10);
    assert.equal(await store.run(isDeregistered(id)), true);
    await sweepAll(store, lease.expiresAt + 30 * DAY_MS);
    assert.deepEqual(await leasesOf(store, [lease]), []);
    assert.equal(await store.run(isDeregistered(id)), false);
  });

  test(`${name}: the latest time passed to sweeping is stored and never decreases`, async (t) => {
    const open = await newPlace(t);
    const store = await open();
    assert.equal(await store.run(readHighWaterTime()), 0);
    await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
    for (const [now, seen] of [
      [T0 + 50, T0 + 50],
      [T0 + 20, T0 + 50],
      [T0 + 51, T0 + 51],
    ] as const) {
      await store.sweep(now, 10);
      assert.equal(await store.run(readHighWaterTime()), seen);
    }
    await store.close();
    const again = await open();
    t.after(() => again.close());
    assert.equal(await again.run(readHighWaterTime()), T0 + 51);
  });

  test(`${name}: sweeping changes neither log nor head record, nor agents, operators, policies, credentials and their versions`, async (t) => {
    const store = await newVault(t);
    const credential = aCredential('a');
    const entries = [anEntry(1, { resource: 'a' }), anEntry(2)];
    await commit(store, {
      entries,
      changes: [
        storedPut('agent', anAgent(1)),
        storedPut('operator', anOperator(1)),
        storedPut('policy', aPolicy(1)),
        stored(credential),
        versioned(credential, 1, Uint8Array.of(1)),
        leased(aLease(1, { credentialId: credential.id })),
      ],
      accesses: new Map([[credential.id, 1]]),
    });
    assert.equal(await sweepAll(store, T0 + 100 * YEAR_MS), 1);
    assert.deepEqual((await store.run(readHead())).head, headAt(2));
    assert.deepEqual(await store.run(readEntries(1, 9, 9)), entries);
    assert.deepEqual(
      [await store.run(readHeldRows('agent')), await store.run(readHeldRows('operator'))],
      [[anAgent(1)], [anOperator(1)]],
    );
    assert.deepEqual(await store.run(readHeldRows('policy')), [aPolicy(1)]);
    const found = await find(store, [{ credential: credential.path, version: 1 }]);
    assert.deepEqual([found.rows.credential, found.versions.length], [[credential], 1]);
    assert.equal(await store.readAccessCount(credential.id), 1);
  });
}
