/** Contract: exposures stay exact while leases are folded into them and deleted, step by step. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActorName, CredentialId } from '../../src/core/names.ts';
import { FIRST_EXPOSURE, listExposures, listLeaseExposures, readExposureProgress } from '../../src/store/exposures.ts';
import { NEWEST_LEASE } from '../../src/store/lease-lists.ts';
import type { Store } from '../../src/store/port.ts';
import type { ResultOf } from '../../src/store/statement.ts';
import { aLease, asPath, commit, leased, T0 } from './rows.ts';
import type { Subject } from './store.ts';
import { numbers } from './sweeping.ts';

const DAY_MS = 24 * 3_600_000;
const ALL = { path: null, agentName: null };

/** The acts that the stored exposures and the leases after them add up to. */
async function countActs(store: Store, now: number): Promise<number> {
  const through = await store.run(readExposureProgress());
  const stored = await store.run(listExposures(ALL, FIRST_EXPOSURE, 1000));
  let times = stored.rows.reduce((sum, row) => sum + row.times, 0);
  for (let before: number | null = NEWEST_LEASE; before !== null; ) {
    const step: ResultOf<typeof listLeaseExposures> = await store.run(
      listLeaseExposures(store.dialect, ALL, through, now, before),
    );
    times += step.rows.reduce((sum, row) => sum + row.times, 0);
    before = step.next;
  }
  return times;
}

export function exposureContract({ name, newVault }: Subject): void {
  test(`${name}: no act is lost or counted twice when leases of long ago become part of the exposures and are deleted`, async (t) => {
    const store = await newVault(t);
    const count = 12_000;
    const leases = numbers(count).map((seq) =>
      aLease(seq, {
        agentName: `ci-${seq % 3}` as ActorName,
        path: asPath(`p/${seq % 7}`),
        credentialId: `of ${seq % 7}` as CredentialId,
        issuedAt: T0,
        expiresAt: T0 + 1000,
      }),
    );
    await commit(store, { changes: leases.map(leased) });
    const now = T0 + 30 * DAY_MS;
    assert.equal(await countActs(store, now), count);
    let [steps, isDone] = [0, false];
    while (!isDone) {
      ({ isDone } = await store.sweep(now, 10_000));
      steps += 1;
      assert.equal(await countActs(store, now), count, `after step ${steps}`);
    }
    assert.ok(steps > 3, `${steps} steps`);
    assert.deepEqual((await store.run(listLeaseExposures(store.dialect, ALL, 0, now, NEWEST_LEASE))).rows, []);
    const { rows } = await store.run(listExposures({ path: asPath('p/1'), agentName: null }, FIRST_EXPOSURE, 2));
    assert.deepEqual(
      rows.map((row) => [row.agentName, row.kind, row.firstAt, row.newestVersion]),
      [
        ['ci-0', 'retrieve', T0, null],
        ['ci-1', 'retrieve', T0, null],
      ],
    );
  });
}
