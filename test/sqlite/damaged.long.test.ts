// SQLite files that are damaged or belong to another program: the service refuses to start with one line, or starts and
// continues; it never crashes. SOURCE: SECURITY.md, P10; docs/decisions.md, "The process".

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { executeSql } from '../kit/direct-db.ts';
import { startTestService } from '../kit/service.ts';
import { assertNoStart, assertProgramRefuses, copyVault, outcomeOfStart } from '../server/vaults.ts';

const PAGE = 8192;

test('a database with a newer schema is rejected in one line and not changed', async (t) => {
  const dataDir = await copyVault(t);
  await executeSql(dataDir, 'PRAGMA user_version = 999');
  await assertProgramRefuses(
    dataDir,
    /the database has schema 999, this Leasehold knows up to \d+: start the Leasehold/,
  );
});

test('a database of another program is rejected and not changed', async (t) => {
  const dataDir = await copyVault(t);
  await executeSql(dataDir, 'PRAGMA application_id = 7');
  await assertNoStart(t, dataDir, /is a database of another program/);
});

test('a file that is no longer a database is reported in one line', async (t) => {
  const dataDir = await copyVault(t);
  const file = join(dataDir, 'leasehold.db');
  writeFileSync(file, Buffer.concat([Buffer.alloc(100, 'x'), readFileSync(file).subarray(100)]));
  await assertProgramRefuses(dataDir, /not a database/);
});

test('a damaged schema is reported in one line, even if SQLite’s message has several', async (t) => {
  const dataDir = await copyVault(t);
  const database = new DatabaseSync(join(dataDir, 'leasehold.db'), { defensive: false });
  database.exec(`PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET name = 'agents' || char(10) || 'x', sql = 'CREATE TABLE agents (' WHERE name = 'agents'`);
  database.close();
  await assertProgramRefuses(dataDir, /malformed database schema/);
});

test('with any damaged page the start is rejected in one line or succeeds', async (t) => {
  const dataDir = await copyVault(t);
  const [file, good] = [join(dataDir, 'leasehold.db'), join(dataDir, '..', 'good.db')];
  copyFileSync(file, good);
  // A successful start marks what it wrote, so the restored database is older than its rollback marker.
  const evidence = ['rollback.marker', 'checkpoints.log'].map((name) => join(dataDir, name));
  const written = evidence.map((path) => readFileSync(path));
  const restoreEvidence = (): void => {
    for (const [index, path] of evidence.entries()) writeFileSync(path, written[index] ?? '');
  };
  const pages = Math.floor(statSync(good).size / PAGE);
  const outcomes = new Set<string>();
  for (let page = 0; page < pages; page++) {
    const bytes = readFileSync(good);
    bytes.fill(0xff, page * PAGE, (page + 1) * PAGE);
    writeFileSync(file, bytes);
    restoreEvidence();
    outcomes.add(await outcomeOfStart(t, dataDir));
  }
  assert.equal(outcomes.has('refused'), true);
  copyFileSync(good, file);
  restoreEvidence();
  assert.equal(await outcomeOfStart(t, dataDir), 'started');
});

test('a truncated database is rejected in one line', async (t) => {
  const dataDir = await copyVault(t);
  const file = join(dataDir, 'leasehold.db');
  const size = statSync(file).size;
  for (const left of [size - PAGE, Math.floor(size / 2), 3 * PAGE, PAGE + 1, PAGE, 200, 50]) {
    truncateSync(file, left);
    assert.equal(await outcomeOfStart(t, dataDir), 'refused', `${left} bytes`);
  }
});

test('an invalid write-ahead log is ignored, and the vault is that of its last checkpoint', async (t) => {
  const dataDir = await copyVault(t);
  const wal = join(dataDir, 'leasehold.db-wal');
  assert.equal(existsSync(wal), false);
  writeFileSync(wal, 'x'.repeat(10_000));
  const { admin } = await startTestService(t, [], dataDir);
  assert.equal((await admin.get('/api/v1/credentials/a/b')).body.data.value, 'kept');
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
});
