// Sweeping on a failing disk: it stops the process, and concurrent readers receive an error.

import assert from 'node:assert/strict';
import { fdatasyncSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { toApiError, toErrorResponse } from '../../src/http/errors.ts';
import { startClock } from '../../src/ledger/clock.ts';
import { startSweeping } from '../../src/server/background-tasks.ts';
import { createLog } from '../../src/server/log.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { readHighWaterTime, readSession } from '../../src/store/vault-metadata.ts';
import { KEYS } from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../vault/fixture.ts';

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
