// Decide, lend, record, commit, then speak, where the disk is slow or fails: turns go on, and nobody is told what may be lost.

import assert from 'node:assert/strict';
import { fdatasyncSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { get, newGate, openVault, outcomeOf, put, SILENT, settle, until, verify } from '../vault/fixture.ts';

/** Operations for which a turn is written while another one waits for the disk. */
const WORTH_A_TURN = 32;

/** A vault whose next syncs wait at a gate, or fail there. */
async function vaultOnSlowDisk(t: TestContext) {
  let gate: ReturnType<typeof newGate> | null = null;
  let fails = false;
  // Before the vault's own: a store that closes waits for the disk.
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

test('while the disk works the next turns are decided and written; nobody is answered before it is done', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key', 'old');
  disk.hold();
  const answered: string[] = [];
  const ask = (name: string, asked: Promise<unknown>) =>
    asked.then((answer) => answered.push(typeof answer === 'string' ? `${name} ${answer}` : name));
  const asked = [ask('put', put(vault, 'prod/key', 'new'))];
  await until(() => countWritten(vault.directory) === 2, 'the first turn is written');
  for (let number = 0; number < WORTH_A_TURN; number++) asked.push(ask('get', get(vault, 'prod/key')));
  await until(() => countWritten(vault.directory) === 2 + WORTH_A_TURN, 'the second turn is written');
  asked.push(ask('unrecorded', vault.ledger.submit(SILENT)));
  await settle(50);
  assert.deepEqual(answered, [], 'somebody was told what may be lost');
  disk.release();
  await Promise.all(asked);
  assert.deepEqual(answered.sort(), [...Array<string>(WORTH_A_TURN).fill('get new'), 'put', 'unrecorded']);
  assert.equal((await verify(vault)).isValid, true);
});

test('idle is when all is answered, not when all is written', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  disk.hold();
  const asked = put(vault, 'prod/key');
  await until(() => countWritten(vault.directory) === 1, 'the turn is written');
  let isIdle = false;
  const idle = vault.ledger.idle().then(() => {
    isIdle = true;
  });
  await settle(50);
  assert.equal(isIdle, false);
  disk.release();
  await Promise.all([asked, idle]);
});

test('a sync that fails: everybody who waits is refused, the process is told to stop, and nothing is done any more', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key');
  disk.hold();
  const first = outcomeOf(get(vault, 'prod/key'));
  await until(() => countWritten(vault.directory) === 2, 'the first turn is written');
  const second = Array.from({ length: WORTH_A_TURN }, () => outcomeOf(get(vault, 'prod/key')));
  const written = 2 + WORTH_A_TURN;
  await until(() => countWritten(vault.directory) === written, 'the second turn is written');
  const unrecorded = outcomeOf(vault.ledger.submit(SILENT));
  await settle(50);
  disk.fail();
  assert.deepEqual(new Set(await Promise.all([first, ...second, unrecorded])), new Set(['UNAVAILABLE']));
  assert.equal(vault.ledger.state, 'failed');
  assert.equal(vault.broken.length, 1);
  assert.equal(await outcomeOf(get(vault, 'prod/key')), 'UNAVAILABLE');
  assert.equal(countWritten(vault.directory), written);
});

test('a slow disk is not outrun: what is written and not answered is bounded, the rest waits in the queue', async (t) => {
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

test('a few operations wait for the disk with the turn before them, and then go together', async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key');
  disk.hold();
  const first = get(vault, 'prod/key');
  await until(() => countWritten(vault.directory) === 2, 'the first turn is written');
  const few = Array.from({ length: WORTH_A_TURN - 1 }, () => get(vault, 'prod/key'));
  await settle(50);
  assert.equal(countWritten(vault.directory), 2, 'a turn was written that would have had to wait for the next sync');
  disk.release();
  await Promise.all([first, ...few]);
  assert.equal(countWritten(vault.directory), 1 + WORTH_A_TURN);
});

test('idle is also when a failed sync refused all that waited for it', { timeout: 120_000 }, async (t) => {
  const { vault, disk } = await vaultOnSlowDisk(t);
  await put(vault, 'prod/key');
  disk.hold();
  const first = outcomeOf(get(vault, 'prod/key'));
  await until(() => countWritten(vault.directory) === 2, 'the first turn is written');
  const second = outcomeOf(get(vault, 'prod/key'));
  const idle = vault.ledger.idle();
  await settle(20);
  disk.fail();
  assert.deepEqual(await Promise.all([first, second]), ['UNAVAILABLE', 'UNAVAILABLE']);
  await idle;
});
