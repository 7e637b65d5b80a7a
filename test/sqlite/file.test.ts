// Properties of the SQLite store: its settings, its files, its migrations, and the lock between processes.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { describeFailure } from '../../src/server/operator-errors.ts';
import { readHead } from '../../src/store/audit-log.ts';
import { StoreError } from '../../src/store/errors.ts';
import { readMigrations } from '../../src/store/migrations.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { DatabaseLock } from '../../src/store/sqlite/database-lock.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import {
  aCredential,
  anAgent,
  anEntry,
  asPath,
  commit,
  headAt,
  KEY_CHECK,
  KEYS,
  stored,
  T0,
  versioned,
} from '../contract/rows.ts';
import { temporaryDirectory } from '../kit/directory.ts';

const ROOT = join(import.meta.dirname, '../..');
const newFile = (t: TestContext): string => join(temporaryDirectory(t), 'vault.db');

async function vaultFile(t: TestContext): Promise<string> {
  const file = newFile(t);
  const store = new SqliteStore(file);
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  const credential = aCredential('a');
  await commit(store, {
    entries: [anEntry(1)],
    changes: [
      { kind: 'put', resource: 'agent', row: anAgent(1) },
      stored(credential),
      versioned(credential, 1, Uint8Array.from({ length: 9000 })),
    ],
  });
  await store.close();
  return file;
}

/** Changes the file like another program with access to it. */
function outside(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

const settings = (database: DatabaseSync, name: string): unknown =>
  Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];

test('the settings of the connection are in effect', (t) => {
  const database = openDatabase(newFile(t));
  t.after(() => database.close());
  const expected = {
    journal_mode: 'wal',
    // Commits are synced outside the event loop; see wal-sync.test.ts.
    synchronous: 1,
    fullfsync: 1,
    trusted_schema: 0,
    cell_size_check: 1,
    temp_store: 2,
  };
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, settings(database, name)])), expected);
});

test('the schema cannot be written, and text in double quotes is not a string', (t) => {
  const database = openDatabase(newFile(t));
  t.after(() => database.close());
  assert.throws(() => database.exec("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = ''"), /may not be/);
  assert.throws(() => database.prepare('SELECT "nothing"'), /no such column/);
});

test('every table is strict and rejects values of another type', (t) => {
  const database = openDatabase(newFile(t));
  t.after(() => database.close());
  const tables = database.prepare("SELECT name, strict FROM pragma_table_list WHERE type = 'table'").all();
  const own = tables.filter(({ name }) => !String(name).startsWith('sqlite_'));
  assert.ok(own.length >= 10);
  assert.deepEqual(
    own.filter(({ strict }) => strict !== 1),
    [],
  );
  assert.throws(() => database.exec("INSERT INTO spent_challenges VALUES ('c', 'soon')"), /cannot store/);
});

test('migrations are numbered 1, 2, 3 … without gaps, and the file stores the last one', (t) => {
  const migrations = readMigrations('sqlite');
  const names = migrations.map(({ name }) => name);
  assert.deepEqual(
    migrations.map(({ number, name }) => `${String(number).padStart(4, '0')}_${name.slice(5)}`),
    names,
  );
  assert.deepEqual(
    migrations.map(({ number }) => number),
    names.map((_, index) => index + 1),
  );
  for (const file of readdirSync(join(ROOT, 'src/store/migrations/sqlite')))
    assert.ok(names.includes(file.slice(0, -4)));
  const database = openDatabase(newFile(t));
  t.after(() => database.close());
  assert.equal(settings(database, 'user_version'), migrations.length);
});

const REFUSED: readonly (readonly [what: string, make: (t: TestContext) => Promise<string> | string, line: RegExp])[] =
  [
    [
      'a vault of a newer schema',
      async (t) => {
        const file = await vaultFile(t);
        outside(file, 'PRAGMA user_version = 999');
        return file;
      },
      /schema 999/,
    ],
    [
      'a vault of a newer schema that keeps its journal otherwise',
      async (t) => {
        const file = await vaultFile(t);
        outside(file, 'PRAGMA journal_mode = DELETE; PRAGMA user_version = 999');
        return file;
      },
      /schema 999/,
    ],
    [
      'a database of another program',
      (t) => {
        const file = newFile(t);
        outside(file, 'CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)');
        return file;
      },
      /another program/,
    ],
    [
      'a database of another program with its own application id and no table yet',
      (t) => {
        const file = newFile(t);
        outside(file, 'PRAGMA application_id = 77');
        return file;
      },
      /another program/,
    ],
    [
      'a file that is not a database',
      (t) => {
        const file = newFile(t);
        writeFileSync(file, 'Dear diary, '.repeat(1000));
        return file;
      },
      /not a database/,
    ],
  ];

for (const [what, make, line] of REFUSED) {
  test(`rejected with one line and not changed: ${what}`, async (t) => {
    const file = await make(t);
    const before = readFileSync(file);
    assert.throws(
      () => new SqliteStore(file),
      (error) => {
        assert.ok(error instanceof StoreError, String(error));
        assert.match(error.message, line);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      },
    );
    assert.ok(before.equals(readFileSync(file)), 'the file was changed');
    assert.deepEqual(readdirSync(join(file, '..')), ['vault.db']);
  });
}

test('a copy of an open vault is complete with its write-ahead log', async (t) => {
  const file = newFile(t);
  const store = new SqliteStore(file);
  t.after(() => store.close());
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  await commit(store, { entries: [anEntry(1)] });
  const copy = newFile(t);
  for (const end of ['', '-wal']) copyFileSync(file + end, copy + end);
  const again = new SqliteStore(copy);
  t.after(() => again.close());
  assert.deepEqual(await again.run(readHead()), await store.run(readHead()));
  // The frames of its log may not be on disk, so they were written again, into the database.
  assert.equal(statSync(`${copy}-wal`).size, 0);
});

test('another program that reads the open vault leaves the index of its log as it is', async (t) => {
  const file = newFile(t);
  const store = new SqliteStore(file);
  t.after(() => store.close());
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  const { size } = statSync(`${file}-shm`);
  const read = 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM vault").fetchall()';
  execFileSync('python3', ['-c', read, file]);
  assert.equal(statSync(`${file}-shm`).size, size);
  await commit(store, { entries: [anEntry(1)] });
});

test('a damaged page is reported as a storage error, never as a missing row', async (t) => {
  const file = await vaultFile(t);
  const database = new DatabaseSync(file);
  const root = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'credential_versions'").get();
  const pageSize = Number(settings(database, 'page_size'));
  database.close();
  const bytes = readFileSync(file);
  bytes.fill(0xa5, (Number(root?.['rootpage']) - 1) * pageSize, Number(root?.['rootpage']) * pageSize);
  writeFileSync(file, bytes);
  const store = new SqliteStore(file);
  t.after(() => store.close());
  await assert.rejects(store.begin([{ credential: asPath('a'), version: 1 }]), {
    name: 'StoreError',
    kind: 'fatal',
  });
});

test('while another connection writes to a vault, it is unavailable, and nothing is written', async (t) => {
  const file = await vaultFile(t);
  const store = new SqliteStore(file);
  t.after(() => store.close());
  const other = new DatabaseSync(file);
  other.exec('BEGIN IMMEDIATE');
  await assert.rejects(commit(store, { entries: [anEntry(2)] }), { name: 'StoreError', kind: 'unavailable' });
  other.exec('ROLLBACK');
  other.close();
  await commit(store, { entries: [anEntry(2)] });
  assert.equal((await store.run(readHead())).last?.seq, 2);
});

/** Takes the lock in a separate process; resolves to whether that process holds it. */
async function lockElsewhere(t: TestContext, file: string) {
  const module = pathToFileURL(join(ROOT, 'src/store/sqlite/database-lock.ts')).href;
  const script = `import { DatabaseLock } from ${JSON.stringify(module)};
    const lock = DatabaseLock.take(${JSON.stringify(file)});
    console.log(lock === null ? 'taken' : 'held');
    if (lock !== null) setInterval(() => lock, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const [said] = await once(child.stdout, 'data');
  return {
    isHeld: String(said).trim() === 'held',
    async kill() {
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}

test('one process holds the lock; it is free after that process is killed or releases it', async (t) => {
  const file = join(temporaryDirectory(t), 'lock');
  const elsewhere = await lockElsewhere(t, file);
  assert.equal(elsewhere.isHeld, true);
  assert.equal(DatabaseLock.take(file), null);
  await elsewhere.kill();
  const own = DatabaseLock.take(file);
  assert.ok(own !== null, 'the lock outlived its process');
  assert.equal((await lockElsewhere(t, file)).isHeld, false);
  assert.equal(DatabaseLock.take(file), null);
  own.release();
  const again = await lockElsewhere(t, file);
  assert.equal(again.isHeld, true);
});

test('locking a file that is not a database is an error', (t) => {
  const file = join(temporaryDirectory(t), 'lock');
  writeFileSync(file, 'x'.repeat(5000));
  assert.throws(() => DatabaseLock.take(file), StoreError);
});

test('a database of another version with the same number is not changed, and is named as such', (t) => {
  const file = newFile(t);
  openDatabase(file).close();
  const database = new DatabaseSync(file);
  database.exec('ALTER TABLE audit_entries DROP COLUMN code; ALTER TABLE policies DROP COLUMN expires_at');
  database.exec('PRAGMA user_version = 1');
  database.close();
  assert.throws(
    () => openDatabase(file),
    /has no column audit_entries\.code: a version before the first release wrote it/,
  );
  const after = new DatabaseSync(file, { readOnly: true });
  t.after(() => after.close());
  assert.equal(settings(after, 'user_version'), 1);
  assert.equal(after.prepare("SELECT 1 FROM pragma_table_info('policies') WHERE name = 'expires_at'").get(), undefined);
});

test('a database of the first schema gets the columns that were added since', (t) => {
  const file = newFile(t);
  openDatabase(file).close();
  const database = new DatabaseSync(file);
  database.exec('ALTER TABLE policies DROP COLUMN expires_at; PRAGMA user_version = 1');
  database.exec(
    "INSERT INTO policies (name, principal, resources, actions, max_ttl_seconds, created_at, mac) VALUES ('p', '', '', '', 1, 1, '')",
  );
  database.close();
  const opened = openDatabase(file);
  t.after(() => opened.close());
  assert.deepEqual(
    { ...opened.prepare('SELECT name, expires_at FROM policies').get() },
    { name: 'p', expires_at: null },
  );
});

test('a lock file that cannot be created is reported with its name and the remedy, and no backup is advised', (t) => {
  const file = join(temporaryDirectory(t), 'missing', 'lock');
  assert.throws(
    () => DatabaseLock.take(file),
    (error) => {
      const line = describeFailure(error)?.line ?? '';
      assert.ok(line.startsWith(`${file}: SQLite: unable to open database file.`), line);
      assert.match(line, /room for another file \(df -i\)/);
      assert.doesNotMatch(line, /restore|altered|damaged/i);
      return true;
    },
  );
});
