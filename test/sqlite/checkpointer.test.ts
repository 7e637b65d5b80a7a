// The write-ahead log stays short, whatever is written and read.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readEntries } from '../../src/store/audit-log.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { commitEntries, headAt, KEY_CHECK, KEYS, T0 } from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';

const WORTH_FRAMES = 20;
const PAGE_BYTES = 8192;

async function openVault(t: TestContext) {
  const file = join(temporaryDirectory(t), 'vault.db');
  const store = new SqliteStore(file, { checkpoints: { checkpointThreshold: WORTH_FRAMES } });
  t.after(() => store.close().catch(() => undefined));
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  const write = (count: number): Promise<void> => commitEntries(store, count);
  const pagesOfLog = (): number => Math.ceil(statSync(`${file}-wal`).size / PAGE_BYTES);
  return { file, store, write, pagesOfLog };
}

test('the write-ahead log is checkpointed while batches continue, and restarts', async (t) => {
  const { file, store, write, pagesOfLog } = await openVault(t);
  await write(600);
  // Batches wait at three times the threshold, which is looked at after every sixteenth.
  assert.ok(pagesOfLog() < 16 * WORTH_FRAMES, `${pagesOfLog()} pages`);
  const all = await store.run(readEntries(1, 10_000, 10_000));
  assert.equal(all.length, 600);
  await store.close();
  const database = new DatabaseSync(file);
  t.after(() => database.close());
  assert.equal(database.prepare('SELECT count(*) AS n FROM audit_entries').get()?.['n'], 600);
  assert.equal(Object.values(database.prepare('PRAGMA integrity_check').get() ?? {})[0], 'ok');
});

test('a snapshot that another program keeps open makes the log longer and stops nothing', async (t) => {
  const { file, write, pagesOfLog } = await openVault(t);
  await write(10);
  const other = new DatabaseSync(file);
  other.exec('BEGIN; SELECT count(*) FROM audit_entries');
  await write(300);
  const held = pagesOfLog();
  assert.ok(held > 8 * WORTH_FRAMES, `${held} pages: the log was restarted under a reader`);
  other.exec('ROLLBACK');
  other.close();
  const look = new DatabaseSync(file);
  t.after(() => look.close());
  // The file keeps its size; the log in it is short again.
  const frames = (): number => Number(look.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.['log']);
  while (frames() >= 8 * WORTH_FRAMES) await write(50);
});

/** How many entries the database file has without its write-ahead log, as in a copy of that file alone. */
function entriesAlone(t: TestContext, file: string): number {
  const alone = join(temporaryDirectory(t), 'alone.db');
  copyFileSync(file, alone);
  const database = new DatabaseSync(alone);
  try {
    const table = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'audit_entries'").get();
    return table === undefined ? 0 : Number(database.prepare('SELECT count(*) AS n FROM audit_entries').get()?.['n']);
  } finally {
    database.close();
  }
}

test('an idle store has everything in the database file', async (t) => {
  const file = join(temporaryDirectory(t), 'vault.db');
  const store = new SqliteStore(file, { checkpoints: { idleMs: 50 } });
  t.after(() => store.close());
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  await commitEntries(store, 30);
  const deadline = performance.now() + 120_000;
  while (entriesAlone(t, file) < 30 && performance.now() < deadline) await sleep(50);
  assert.equal(entriesAlone(t, file), 30);
});

test('a closed store has everything in the database file, even while another program has it open', async (t) => {
  const { file, store, write } = await openVault(t);
  await write(5);
  const other = new DatabaseSync(file);
  t.after(() => other.close());
  other.prepare('SELECT count(*) FROM audit_entries').get();
  await store.close();
  assert.equal(entriesAlone(t, file), 5);
});

test('a closed store leaves no write-ahead log, although a thread has just checkpointed it', async (t) => {
  for (let round = 0; round < 3; round += 1) {
    const { file, store, write } = await openVault(t);
    await write(60);
    await store.close();
    assert.ok(!existsSync(`${file}-wal`), `round ${round}`);
  }
});
