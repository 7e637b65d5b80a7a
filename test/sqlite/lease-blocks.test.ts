// The blocks in which a name has leases: queries find them across blocks and after rolled-back batches, and sweeping
// deletes them.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import type { ActorName } from '../../src/core/names.ts';
import { listLeases, NEWEST_LEASE } from '../../src/store/lease-lists.ts';
import { BLOCK_SEQS } from '../../src/store/sqlite/lease-blocks.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { ENDED_LEASE_RETENTION_MS, type Lease } from '../../src/vault/leases/lease.ts';
import { aLease, commit, headAt, KEY_CHECK, KEYS, leased, T0 } from '../contract/rows.ts';
import { countLeases, rowsFrom } from '../contract/scan.ts';
import { sweepAll } from '../contract/sweeping.ts';
import { temporaryDirectory } from '../kit/directory.ts';

async function openVault(t: TestContext) {
  const file = join(temporaryDirectory(t), 'vault.db');
  const store = new SqliteStore(file);
  t.after(() => store.close());
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  const add = (...leases: Lease[]) => commit(store, { changes: leases.map(leased) });
  const seqsOf = async (agentName: ActorName): Promise<number[]> => {
    const query = { agentId: null, agentName, path: null, status: null, now: T0 };
    const leases = await rowsFrom(
      NEWEST_LEASE,
      (from, most) => store.run(listLeases(store.dialect, query, from, most)),
      {
        stepRows: 2,
      },
    );
    assert.equal((await countLeases(store, query)).count, leases.length);
    return leases.map(({ seq }) => seq);
  };
  const spans = (): number => {
    const direct = new DatabaseSync(file, { readOnly: true });
    const { n } = direct.prepare('SELECT count(*) AS n FROM lease_spans').get() ?? {};
    direct.close();
    return Number(n);
  };
  return { store, add, seqsOf, spans };
}

const [CI, DEPLOY] = ['ci', 'deploy'] as ActorName[] as [ActorName, ActorName];
const lease = (agentName: ActorName, seq: number, fields: Partial<Lease> = {}): Lease =>
  aLease(seq, { agentName, issuedAt: T0 - 1000, expiresAt: T0 + 1000, ...fields });

test('the leases of a name are found in every block, newest first, also at the borders; other names’ leases are not', async (t) => {
  const { add, seqsOf, spans } = await openVault(t);
  const own = [1, 2, BLOCK_SEQS - 1, BLOCK_SEQS, BLOCK_SEQS + 1, 5 * BLOCK_SEQS, 40 * BLOCK_SEQS - 1];
  const others = [3, BLOCK_SEQS + 2, 7 * BLOCK_SEQS, 41 * BLOCK_SEQS];
  await add(...own.map((seq) => lease(CI, seq)), ...others.map((seq) => lease(DEPLOY, seq)));
  assert.deepEqual(await seqsOf(CI), own.toReversed());
  assert.deepEqual(await seqsOf(DEPLOY), others.toReversed());
  assert.deepEqual(await seqsOf('nobody' as ActorName), []);
  assert.equal(spans(), 4 + 4);
});

test('a rolled-back batch leaves no gap: the next lease of the name in that block is found', async (t) => {
  const { add, seqsOf } = await openVault(t);
  await add(lease(DEPLOY, 1));
  await assert.rejects(add(lease(CI, 2), lease(CI, 1)), { name: 'StoreError' });
  assert.deepEqual(await seqsOf(CI), []);
  await add(lease(CI, 3));
  assert.deepEqual(await seqsOf(CI), [3]);
});

test('a name whose leases in the newest block were swept is found again with its next lease', async (t) => {
  const { store, add, seqsOf, spans } = await openVault(t);
  const issuedAt = T0 - 2 * ENDED_LEASE_RETENTION_MS;
  await add(lease(CI, 1, { issuedAt, expiresAt: issuedAt + 1 }), lease(DEPLOY, 2));
  await sweepAll(store, T0, 500);
  assert.equal(spans(), 1);
  await add(lease(CI, 3));
  assert.deepEqual(await seqsOf(CI), [3]);
});

test('the blocks of swept leases are deleted; those with leases of the name stay', async (t) => {
  const { store, add, seqsOf, spans } = await openVault(t);
  const [old, stays] = [Array.from({ length: 30 }, (_, span) => span * BLOCK_SEQS + 5), 100 * BLOCK_SEQS];
  const ended = { issuedAt: T0 - 2 * ENDED_LEASE_RETENTION_MS, expiresAt: T0 - 2 * ENDED_LEASE_RETENTION_MS + 1 };
  await add(...old.map((seq) => lease(CI, seq, ended)), lease(DEPLOY, 7, ended), lease(CI, stays));
  assert.equal(spans(), 32);
  await sweepAll(store, T0, 500);
  assert.deepEqual(await seqsOf(CI), [stays]);
  assert.equal(spans(), 1);
});
