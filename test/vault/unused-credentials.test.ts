// The search for unused credentials leaves the event loop to other requests.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ADMIN } from '../../src/core/names.ts';
import { listCredentials } from '../../src/store/credential-lists.ts';
import { listExposures } from '../../src/store/exposures.ts';
import type { Statement } from '../../src/store/statement.ts';
import { examineHoldings } from '../../src/vault/attention/holdings.ts';
import { executeSql } from '../kit/direct-db.ts';
import { inFrontOfReads, openVault, put } from './fixture.ts';

const CREDENTIALS = 40;

test('of many credentials that were used long ago, few are examined in one turn of the event loop', async (t) => {
  let [examined, inThisTurn, most] = [0, 0, 0];
  const vault = await openVault(t, {
    inFront: (store) =>
      inFrontOfReads(store, listExposures, async (_, procedure) => {
        const [path] = (procedure.next().value as Statement).values;
        const { rows } = await store.run(
          listCredentials(
            store.dialect,
            { ranges: [{ from: String(path), to: `${path}!` }], type: null },
            { range: 0, after: '' },
            1,
          ),
        );
        examined += 1;
        inThisTurn += 1;
        most = Math.max(most, inThisTurn);
        // A slice of work is over.
        for (const endsAt = performance.now() + 3; performance.now() < endsAt; );
        const exposures = rows.map(({ id, path: of }) => ({
          ...{ path: of, credentialId: id, version: 1, kind: 'retrieve' as const, agentName: ADMIN },
          ...{ firstAt: 1, lastAt: 1, times: 1, newestVersion: 1 },
        }));
        return { rows: exposures, next: null };
      }),
  });
  for (let number = 0; number < CREDENTIALS; number++) await put(vault, `old/${number}`);
  await executeSql(vault.directory, 'UPDATE credentials SET created_at = 1');
  let isOver = false;
  const nextTurn = (): void => {
    inThisTurn = 0;
    if (!isOver) setImmediate(nextTurn);
  };
  nextTurn();
  // The time may be up before all were examined, and on a busy machine before the second was.
  for (let tries = 0; examined < 2; tries++) {
    assert.ok(tries < 20, 'no more than one was examined in any try');
    examined = 0;
    const { items } = await examineHoldings(vault);
    assert.deepEqual(items, []);
    assert.ok(examined > 0, 'none was examined');
  }
  isOver = true;
  assert.equal(most, 1);
});
