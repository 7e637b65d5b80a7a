// Sweeping a SQLite file: free pages are reused, a failure leaves no partial step, and a failing disk stops the
// process.

import assert from 'node:assert/strict';
import { fdatasyncSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { toApiError, toErrorResponse } from '../../src/http/errors.ts';
import { startClock } from '../../src/ledger/clock.ts';
import { startSweeping } from '../../src/server/background-tasks.ts';
import { createLog } from '../../src/server/log.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { readHighWaterTime, readSession } from '../../src/store/vault-metadata.ts';
import { ENDED_LEASE_RETENTION_MS } from '../../src/vault/leases/lease.ts';
import {
  aLease,
  aSession,
  asChallenge,
  commit,
  headAt,
  KEY_CHECK,
  KEYS,
  leased,
  storedPut,
  T0,
} from '../contract/rows.ts';
import { numbers, sweepAll } from '../contract/sweeping.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../vault/fixture.ts';

async function newVault(t: TestContext) {
  const file = join(temporaryDirectory(t), 'vault.db');
  const store = new SqliteStore(file);
  t.after(() => store.close());
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  const direct = new DatabaseSync(file);
  t.after(() => direct.close());
  return { store, direct };
}

const STEP_ROWS = 500;
const LATER = T0 + 2 * ENDED_LEASE_RETENTION_MS;

test('the file does not grow while as much is deleted as is added', async (t) => {
  const { store, direct } = await newVault(t);
  const sizes: number[] = [];
  for (let day = 0; day < 5; day++) {
    const first = day * 1000;
    const issuedAt = T0 + 2 * day * ENDED_LEASE_RETENTION_MS;
    const expiresAt = issuedAt + 1;
    await commit(store, {
      seq: first + 1000,
      changes: numbers(1000).flatMap((n) => [
        leased(aLease(first + n, { issuedAt, expiresAt })),
        storedPut('session', aSession(first + n, { expiresAt })),
        { kind: 'consumeChallenge' as const, id: asChallenge(first + n), expiresAt },
      ]),
    });
    assert.equal(await sweepAll(store, expiresAt + ENDED_LEASE_RETENTION_MS + 1, STEP_ROWS), 3000);
    sizes.push(Number(direct.prepare('PRAGMA page_count').get()?.['page_count']));
  }
  const [first = 0, ...others] = sizes;
  for (const size of others) assert.ok(size <= first * 1.1, `${sizes} pages`);
});

test('rows of a failed step are deleted later', async (t) => {
  const { store, direct } = await newVault(t);
  await commit(store, { changes: numbers(2500).map((seq) => leased(aLease(seq, { expiresAt: T0 + 1 }))) });
  direct.exec("CREATE TRIGGER held BEFORE DELETE ON leases WHEN old.seq = 1800 BEGIN SELECT RAISE(ABORT, 'held'); END");
  await assert.rejects(sweepAll(store, LATER, STEP_ROWS), { name: 'StoreError', kind: 'unavailable' });
  direct.exec('DROP TRIGGER held');
  const left = Number(direct.prepare('SELECT count(*) AS n FROM leases').get()?.['n']);
  assert.ok(left >= 700, `${left} are left`);
  assert.equal(await sweepAll(store, LATER, STEP_ROWS), left);
  assert.equal(direct.prepare('SELECT count(*) AS n FROM leases').get()?.['n'], 0);
});

const HEAD = { seq: 0, hmac: 'h', mac: 'm', epoch: 0, tree: '', control: '' };
const HEAD_AT = 1;

async function sweepOn(t: TestContext) {
  let fails = false;
  const syncFile = async (descriptor: number): Promise<void> => {
    if (fails) throw new Error('EIO');
    fdatasyncSync(descriptor);
  };
  const store = new SqliteStore(join(temporaryDirectory(t), 'vault.db'), { syncFile });
  t.after(() => store.close());
  await store.initialise('check', HEAD, HEAD_AT, KEYS);
  const broken: unknown[] = [];
  const sweeping = startSweeping(store, startClock(0), createLog('silent'), (failure) => broken.push(failure), 20);
  t.after(() => sweeping.stop());
  return {
    store,
    broken,
    sweeping,
    fail() {
      fails = true;
    },
  };
}

/** A sweep stores the time that it was given. */
async function swept(store: SqliteStore): Promise<void> {
  while ((await store.run(readHighWaterTime())) <= HEAD_AT) await new Promise((resolve) => setTimeout(resolve, 10));
}

test('a failed sync during a sweep stops the process; concurrent readers receive 503, not 500', async (t) => {
  const { store, broken, sweeping, fail } = await sweepOn(t);
  await swept(store);
  fail();
  await until(() => broken.length > 0, 'the failure is reported');
  await sweeping.stop();
  const error = await store.run(readSession('x' as never)).catch((thrown: unknown) => thrown);
  const fault = toApiError(error);
  assert.equal(fault === null ? null : toErrorResponse(fault).status, 503);
});
