/** Contract: ended leases are swept in time, whatever was issued, renewed and swept before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isWithinRetention, type Lease } from '../../src/vault/leases/lease.ts';
import { runs } from '../kit/property.ts';
import { aLease, commit, leased, T0 } from './rows.ts';
import type { Subject } from './store.ts';
import { leasesOf, numbers, sum, sweepAll, sweepInSteps } from './sweeping.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function sweepLeaseContract({ name, newVault }: Subject): void {
  test(`${name}: each lease is deleted 7 days after its end and not earlier, whatever was issued or renewed between the steps`, async (t) => {
    const store = await newVault(t);
    const wait = fc.constantFrom(1, HOUR_MS, DAY_MS, 10 * DAY_MS);
    const round = fc.record({
      wait,
      ttls: fc.array(wait, { maxLength: 4 }),
      apart: fc.constantFrom(1, 700),
      renews: fc.nat(),
    });
    let [seq, now] = [0, T0];
    let leases: Lease[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(round, { minLength: 3, maxLength: 6 }), async (rounds) => {
        for (const { wait: passed, ttls, apart, renews } of rounds) {
          now += passed;
          const fresh = ttls.map((ttl) => {
            seq += apart;
            return aLease(seq, { issuedAt: now, expiresAt: now + ttl });
          });
          const renewed = leases.filter(({ expiresAt }) => expiresAt > now)[renews % 5];
          const changes = fresh.map(leased);
          leases = [...leases, ...fresh];
          if (renewed !== undefined) {
            // A shortened lease may stay for as long as its original lifetime.
            const altered = { ...renewed, expiresAt: Math.max(renewed.expiresAt, now + DAY_MS) };
            changes.push({ kind: 'renewLease', id: altered.id, expiresAt: altered.expiresAt, policyName: 'policy-1' });
            leases = leases.map((lease) => (lease === renewed ? altered : lease));
          }
          await commit(store, { changes, seq });
          await sweepAll(store, now);
          const left = leases.filter((lease) => isWithinRetention(lease, now));
          assert.deepEqual(await leasesOf(store, leases), left);
          leases = left;
        }
      }),
      runs(12, 40),
    );
  });

  test(`${name}: steps end and report it, even if many ended leases are still listed`, async (t) => {
    const store = await newVault(t);
    const now = T0 + DAY_MS;
    await commit(store, { changes: numbers(3000).map((seq) => leased(aLease(seq, { expiresAt: T0 + seq }))) });
    assert.equal(await sweepAll(store, now, 500), 0);
    const steps = await sweepInSteps(store, now + 7 * DAY_MS, 500);
    assert.equal(sum(steps), 3000);
    assert.ok(steps.length >= 6, `${steps.length} steps`);
    assert.equal(await sweepAll(store, now + 7 * DAY_MS, 500), 0);
  });
}
