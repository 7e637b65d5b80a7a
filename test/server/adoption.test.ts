// The first start on a vault of an earlier version records the states of its rows.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { launchProcess } from '../kit/process.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { FORMER_TOKEN, formerVault } from './former-vault.ts';

/** The vault has no rollback marker and no checkpoints. */
const ACCEPT = ['--accept-rollback'];
/** Some batches of the adoption. */
const CREDENTIALS = 2000;
/** A start without an adoption writes less. */
const ADOPTION_BYTES = 300_000;

async function countAdopted(dataDir: string): Promise<number> {
  const [row] = await selectRows(dataDir, "SELECT count(*) AS n FROM audit_entries WHERE event_type = 'service.adopt'");
  return Number(row?.['n']);
}

async function assertAdopted({ admin, as }: TestService): Promise<void> {
  assert.equal((await as(FORMER_TOKEN).get('/api/v1/credentials/a/b')).body.data.value, 'kept');
  assert.equal((await admin.get('/api/v1/targets/a/b')).status, 200);
  const { valid, state } = (await admin.get('/api/v1/audit/verify?state=true&values=true')).body.data;
  assert.deepEqual([valid, state.problems], [true, []]);
}

/** Whether the service writes its adoption. WHY not by a query on SQLite: it could keep the service from starting. */
async function adopts(dataDir: string, before: number): Promise<boolean> {
  if (STORE === 'postgres') return (await countAdopted(dataDir)) > before;
  const wal = statSync(join(dataDir, 'leasehold.db-wal'), { throwIfNoEntry: false });
  return (wal?.size ?? 0) > ADOPTION_BYTES;
}

/** Kills a start while it adopts, or once it is ready. */
async function killAdoption(t: TestContext, dataDir: string, before: number) {
  const { child, ready, ended } = await launchProcess(t, dataDir, ACCEPT);
  let isReady = false;
  ready.then(
    () => (isReady = true),
    () => undefined,
  );
  while (!isReady && !(await adopts(dataDir, before))) await sleep(2);
  const wasReady = isReady;
  child.kill('SIGKILL');
  await ended;
  return { wasReady, adopted: await countAdopted(dataDir) };
}

test('an adoption that is killed several times continues, and records each row once', async (t) => {
  let dataDir = '';
  let partial: number[] = [];
  // On a busy machine an adoption may end before it is seen to begin.
  for (let tries = 0; tries < 5 && partial.length < 2; tries++) {
    dataDir = await formerVault(t, CREDENTIALS);
    // Closing the database empties its write-ahead log.
    assert.equal(await countAdopted(dataDir), 0);
    partial = [];
    for (let isDone = false; !isDone; ) {
      const { wasReady, adopted } = await killAdoption(t, dataDir, partial.at(-1) ?? 0);
      partial.push(adopted);
      isDone = wasReady;
    }
  }
  t.diagnostic(`killed after ${partial.join(', ')} entries`);
  assert.ok(partial.length > 1, 'the kills met the adoption');
  assert.equal(partial.at(-1), 2 * CREDENTIALS + 3);
  await assertAdopted(await startTestService(t, ACCEPT, dataDir));
});

test('a row that was altered before the adoption is not adopted', async (t) => {
  const dataDir = await formerVault(t);
  await executeSql(dataDir, "UPDATE credentials SET description = 'x'");
  const service = await startTestService(t, ACCEPT, dataDir);
  assert.equal((await service.admin.get('/api/v1/credentials/a/b')).status, 500);
  const { state } = (await service.admin.get('/api/v1/audit/verify?state=true')).body.data;
  assert.deepEqual(state.problems, [{ subject: 'credential:a/b', problem: 'altered' }]);
});

for (const [what, sql] of [
  ['missing', 'DELETE FROM audit_head'],
  ['forged', "UPDATE audit_head SET hmac = 'AAAA'"],
] as const) {
  test(`with a head record that is ${what}, no row counts until the operator accepts it`, async (t) => {
    const dataDir = await formerVault(t);
    await executeSql(dataDir, sql);
    const warned = await startTestService(t, [], dataDir);
    assert.notEqual((await warned.as(FORMER_TOKEN).get('/api/v1/credentials/a/b')).status, 200);
    await warned.stop();
    const accepted = await startTestService(t, ACCEPT, dataDir);
    assert.equal((await accepted.as(FORMER_TOKEN).get('/api/v1/credentials/a/b')).body.data?.value, 'kept');
    assert.doesNotMatch(accepted.warnings.join('\n'), /not used/);
  });
}
