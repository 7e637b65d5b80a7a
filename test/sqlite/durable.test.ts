// Durability on a slow or failing disk: batches continue, and no response precedes the sync of its batch.

import assert from 'node:assert/strict';
import { fdatasyncSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { get, newGate, openVault, outcomeOf, put, SILENT, settle, until, verify } from '../vault/fixture.ts';

/** The number of operations for which a batch is written during a sync. */
const WORTH_A_TURN = 32;

/** A vault whose next syncs wait at a gate, or fail there. */
async function vaultOnSlowDisk(t: TestContext) {
  let gate: ReturnType<typeof newGate> | null = null;
  let fails = false;
  // Registered before the vault's own clean-up, because a closing store waits for the disk.
  t.after(() => gate?.open());
  const vault = await openVault(t, {
    syncFile: async (descriptor) => {
      await gate?.pass;
      if (fails) throw new Error('EIO');
      fdatasyncSync(descriptor);
    },
  });
  const disk = {
    hold() {
      gate = newGate();
    },
    release() {
      gate?.open();
      gate = null;
    },
    fail() {
      fails = true;
      gate?.open();
    },
  };
  return { vault, disk };
}

function countWritten(directory: string): number {
  const database = new DatabaseSync(join(directory, 'leasehold.db'), { readOnly: true });
  const row = database.prepare('SELECT count(*) AS n FROM audit_entries').get();
  database.close();
  return Number(row?.['n']);
}

test('during a sync the next batches are decided and written, and no response is sent before its sync', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key', 'old');
  disk.hold();
  const answered: string[] = [];
  const ask = (name: string, asked: Promise<unknown>) =>
    asked.then((answer) => answered.push(typeof answer === 'string' ? `${name} ${answer}` : name));
  const asked = [ask('put', put(vault, 'prod/key', 'new'))];
  await until(() => countWritten(vault.directory) === 2, 'the first batch is written');
  for (let number = 0; number < WORTH_A_TURN; number++) asked.push(ask('get', get(vault, 'prod/key')));
  await until(() => countWritten(vault.directory) === 2 + WORTH_A_TURN, 'the second batch is written');
  asked.push(ask('unrecorded', vault.ledger.submit(SILENT)), ask('read', vault.ledger.read(SILENT)));
  await settle(50);
  assert.deepEqual(answered, [], 'a response preceded its sync');
  disk.release();
  await Promise.all(asked);
  assert.deepEqual(answered.sort(), [...Array<string>(WORTH_A_TURN).fill('get new'), 'put', 'read', 'unrecorded']);
  assert.equal((await verify(vault)).isValid, true);
});

test('the ledger is closed when every operation has its response, not when every batch is written', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  disk.hold();
  const asked = put(vault, 'prod/key');
  await until(() => countWritten(vault.directory) === 1, 'the batch is written');
  let isClosed = false;
  const closed = vault.ledger.close().then(() => {
    isClosed = true;
  });
  await settle(50);
  assert.equal(isClosed, false);
  disk.release();
  await Promise.all([asked, closed]);
});

test('after a failed sync all waiting operations are rejected, the process is told to stop, and nothing is executed', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key');
  disk.hold();
  const first = outcomeOf(get(vault, 'prod/key'));
  await until(() => countWritten(vault.directory) === 2, 'the first batch is written');
  const second = Array.from({ length: WORTH_A_TURN }, () => outcomeOf(get(vault, 'prod/key')));
  const written = 2 + WORTH_A_TURN;
  await until(() => countWritten(vault.directory) === written, 'the second batch is written');
  const unrecorded = outcomeOf(vault.ledger.submit(SILENT));
  await settle(50);
  disk.fail();
  assert.deepEqual(new Set(await Promise.all([first, ...second, unrecorded])), new Set(['UNAVAILABLE']));
  assert.equal(vault.ledger.state, 'failed');
  assert.equal(vault.broken.length, 1);
  assert.equal(await outcomeOf(get(vault, 'prod/key')), 'UNAVAILABLE');
  assert.equal(countWritten(vault.directory), written);
});

test('on a slow disk the number of pending batches is bounded, and the other operations wait in the queue', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key');
  disk.hold();
  const asked = Array.from({ length: 1000 }, () => get(vault, 'prod/key'));
  await settle(200);
  const written = countWritten(vault.directory) - 1;
  assert.ok(written > 0 && written <= 4 * 64, `${written} are written and unanswered`);
  disk.release();
  await Promise.all(asked);
  assert.equal((await verify(vault)).isValid, true);
});

test('a few operations wait for the sync of the previous batch and then form one batch', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key');
  disk.hold();
  const first = get(vault, 'prod/key');
  await until(() => countWritten(vault.directory) === 2, 'the first batch is written');
  const few = Array.from({ length: WORTH_A_TURN - 1 }, () => get(vault, 'prod/key'));
  await settle(50);
  assert.equal(countWritten(vault.directory), 2, 'a batch was written that would have to wait for the next sync');
  disk.release();
  await Promise.all([first, ...few]);
  assert.equal(countWritten(vault.directory), 1 + WORTH_A_TURN);
});

test('the ledger also closes after a failed sync rejected all waiting operations', { timeout: 120_000 }, async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key');
  disk.hold();
  const first = outcomeOf(get(vault, 'prod/key'));
  await until(() => countWritten(vault.directory) === 2, 'the first batch is written');
  const second = outcomeOf(get(vault, 'prod/key'));
  const closed = vault.ledger.close();
  await settle(20);
  disk.fail();
  assert.deepEqual(await Promise.all([first, second]), ['UNAVAILABLE', 'UNAVAILABLE']);
  await closed;
});
