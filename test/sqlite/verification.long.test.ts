/** Verification in threads of a log with an unreadable page. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { verifyInParallel } from '../../src/vault/audit/verification/verification-threads.ts';
import { type OpenedVault, verify } from '../vault/fixture.ts';
import { openLongVault } from '../vault/verification-log.ts';

const ENTRIES = 100_500;

/** The first byte of a page with rows of a table. SOURCE: the file format of SQLite, 1.6, "B-tree Pages". */
const TABLE_LEAF = 0x0d;

/** Makes the page of the file that contains the entry unreadable; returns a function that repairs it. */
function damagePage({ directory }: OpenedVault, seq: number): () => void {
  const path = join(directory, 'leasehold.db');
  const database = new DatabaseSync(path);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const pageSize = Number(database.prepare('PRAGMA page_size').get()?.['page_size']);
  const id = String(database.prepare('SELECT id FROM audit_entries WHERE seq = ?').get(seq)?.['id']);
  database.close();
  const file = openSync(path, 'r+');
  const bytes = readFileSync(file);
  const page = Math.floor(bytes.indexOf(id) / pageSize) * pageSize;
  assert.equal(bytes[page], TABLE_LEAF);
  const writeFirst = (byte: number): void => void writeSync(file, Uint8Array.of(byte), 0, 1, page);
  writeFirst(0xff);
  return () => {
    writeFirst(TABLE_LEAF);
    closeSync(file);
  };
}

test('a failed thread ends the others, whatever their remaining work', async (t) => {
  const vault = await openLongVault(t, ENTRIES);
  const repair = damagePage(vault, 500);
  let least = ENTRIES;
  try {
    // On a busy machine the others may have done their work before the thread that fails has begun.
    for (let tries = 0; tries < 20 && least >= ENTRIES / 2; tries++) {
      let checked = 0;
      const verification = verifyInParallel(vault, ENTRIES, new AbortController().signal, (entries) => {
        checked += entries;
      });
      await assert.rejects(verification, /malformed/);
      least = Math.min(least, checked);
    }
  } finally {
    repair();
  }
  assert.equal(least < ENTRIES / 2, true, `${least} were checked all the same`);
  assert.equal((await verify(vault)).isValid, true);
});
