/** Opening a SQLite file: settings, migrations, and what its errors mean. */
import { DatabaseSync } from 'node:sqlite';
import { globMatches } from '../../core/glob.ts';
import { type Migration, readMigrations } from '../migrations.ts';
import { StoreFailure } from '../port.ts';

/** Marks the file as ours: 'LsHd'. */
const APPLICATION_ID = 0x4c734864;
const BUSY_TIMEOUT_MS = 2000;

// SOURCE: sqlite.org/rescode.html; primary codes are the low byte.
const PRIMARY_CODE = 0xff;
const SQLITE_BUSY = 5;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** A failure of the store for what SQLite threw; what is no SQLite error is a bug and passes. */
export function toFailure(error: unknown): unknown {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return error;
  const code = error.errcode & PRIMARY_CODE;
  const isBroken = code === SQLITE_IOERR || code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
  return new StoreFailure(isBroken ? 'broken' : 'unavailable', `SQLite: ${error.message}`, { cause: error });
}

/**
 * Opens the file, making it where it is missing, and brings its schema up to date.
 * @throws StoreFailure `unavailable` where it is not ours, newer than this program, or locked by another one.
 */
export function openDatabase(file: string): DatabaseSync {
  const database = new DatabaseSync(file, {
    timeout: BUSY_TIMEOUT_MS,
    defensive: true,
    enableDoubleQuotedStringLiterals: false,
  });
  try {
    database.exec('PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;');
    assertOurs(database, file);
    // WHY FULL: with NORMAL, a commit that was answered can be lost with the power.
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;',
    );
    migrate(database, readMigrations('sqlite'));
    database.function('glob_matches', { deterministic: true }, (glob, text) =>
      Number(globMatches(String(glob), String(text))),
    );
    return database;
  } catch (error) {
    database.close();
    throw toFailure(error);
  }
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
}

function assertOurs(database: DatabaseSync, file: string): void {
  const tables = database.prepare('SELECT count(*) AS n FROM sqlite_schema').get();
  if (Number(tables?.['n']) > 0 && pragma(database, 'application_id') !== APPLICATION_ID) {
    throw new StoreFailure('unavailable', `${file} is a database of another program`);
  }
}

function migrate(database: DatabaseSync, migrations: readonly Migration[]): void {
  const isAt = pragma(database, 'user_version');
  const latest = migrations.length;
  if (isAt > latest) {
    throw new StoreFailure(
      'unavailable',
      `the database has schema ${isAt}, this Leasehold knows up to ${latest}: start the newer Leasehold that wrote it`,
    );
  }
  for (const { number, sql } of migrations.slice(isAt)) {
    database.exec(
      `BEGIN IMMEDIATE; ${sql}; PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${number}; COMMIT;`,
    );
  }
}

export function isBusy(error: unknown): boolean {
  return (
    error instanceof StoreFailure &&
    error.cause instanceof Error &&
    'errcode' in error.cause &&
    (Number(error.cause.errcode) & PRIMARY_CODE) === SQLITE_BUSY
  );
}
