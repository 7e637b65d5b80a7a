/** Opening a SQLite file: settings, migrations, and what its errors mean. */
import { DatabaseSync } from 'node:sqlite';
import { globMatches } from '../../core/glob.ts';
import { type Migration, readMigrations } from '../migrations.ts';
import { StoreError } from '../store.ts';

/** Marks the file as ours: 'LsHd'. */
const APPLICATION_ID = 0x4c734864;
export const BUSY_TIMEOUT_MS = 2000;

// SOURCE: sqlite.org/rescode.html; primary codes are the low byte.
const PRIMARY_CODE = 0xff;
const SQLITE_BUSY = 5;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** A failure of the store for what SQLite threw; what is no SQLite error is a bug and passes. */
export function toFailure(error: unknown): unknown {
  if (error instanceof RangeError && 'code' in error && error.code === 'ERR_OUT_OF_RANGE') {
    return new StoreError('unavailable', 'SQLite: a number in the database is out of range: it was altered outside', {
      cause: error,
    });
  }
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return error;
  const code = error.errcode & PRIMARY_CODE;
  const isBroken = code === SQLITE_IOERR || code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
  return new StoreError(isBroken ? 'broken' : 'unavailable', `SQLite: ${error.message}`, { cause: error });
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
    // Pages of a new file: a turn's rows lie in fewer of them than of the usual 4096 bytes.
    database.exec('PRAGMA page_size = 8192; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;');
    const migrations = readMigrations('sqlite');
    assertLeaseholdFile(database, file, migrations.length);
    // NORMAL writes a commit without syncing it, and no commit writes into the database: that is the business of `WalSync`
    // and `Checkpointer`, beside the loop.
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;',
    );
    migrate(database, migrations);
    truncateWal(database, file);
    defineFunctions(database);
    return database;
  } catch (error) {
    database.close();
    throw describeOpenError(file, toFailure(error));
  }
}

/** What our statements call. */
export function defineFunctions(database: DatabaseSync): void {
  database.function('glob_matches', { deterministic: true }, (glob, text) =>
    Number(globMatches(String(glob), String(text))),
  );
}

/**
 * What a process wrote before it ended may not be on disk; after a sync that failed it never comes there by itself, because the
 * system takes its pages for written. Here it is written again, into the database, and synced, before anything builds on it.
 */
function truncateWal(database: DatabaseSync, file: string): void {
  const { busy } = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() ?? {};
  if (busy !== 0) throw new StoreError('unavailable', `${file} is in use by another program; end that first`);
}

/** What SQLite says, with the file, and with what to do where that is known. */
export function describeOpenError(file: string, failure: unknown): unknown {
  if (!(failure instanceof StoreError) || failure.cause === undefined) return failure;
  const mend = failure.kind === 'broken' ? ' It is damaged or no database: restore a backup.' : '';
  return new StoreError(failure.kind, `${file}: ${failure.message}.${mend}`, { cause: failure.cause });
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
}

/** Looks before anything is written. @throws StoreFailure for a file that must not be touched */
function assertLeaseholdFile(database: DatabaseSync, file: string, latest: number): void {
  const mark = pragma(database, 'application_id');
  const tables = Number(database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n']);
  if (mark !== APPLICATION_ID && (mark !== 0 || tables > 0)) {
    throw new StoreError('unavailable', `${file} is a database of another program`);
  }
  const isAt = pragma(database, 'user_version');
  if (isAt > latest) {
    throw new StoreError(
      'unavailable',
      `the database has schema ${isAt}, this Leasehold knows up to ${latest}: start the newer Leasehold that wrote it`,
    );
  }
}

function migrate(database: DatabaseSync, migrations: readonly Migration[]): void {
  for (const { number, sql } of migrations.slice(pragma(database, 'user_version'))) {
    inTransaction(database, () => {
      database.exec(`${sql}; PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${number};`);
    });
  }
}

/** All of the work or nothing of it; written when it returns, and not yet synced. */
export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

export function isBusy(error: unknown): boolean {
  return (
    error instanceof StoreError &&
    error.cause instanceof Error &&
    'errcode' in error.cause &&
    (Number(error.cause.errcode) & PRIMARY_CODE) === SQLITE_BUSY
  );
}
