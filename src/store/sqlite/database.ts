/** Opens a SQLite file: settings, migrations, and translation of errors. */
import { closeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../errors.ts';
import { assertColumns, type Migration, readMigrations } from '../migrations.ts';
import { assertDiskSpace, reserveWalIndex } from './disk-space.ts';

/** Identifies a Leasehold file: 'LsHd'. */
const APPLICATION_ID = 0x4c734864;
export const BUSY_TIMEOUT_MS = 2000;

// SOURCE: sqlite.org/rescode.html; primary codes are the low byte.
const PRIMARY_CODE = 0xff;
const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
const SQLITE_IOERR_SHORT_READ = 522;

/** Whether a row has a number that JavaScript cannot represent, as only an altered one has. */
export function isOutOfRange(error: unknown): boolean {
  return error instanceof RangeError && 'code' in error && error.code === 'ERR_OUT_OF_RANGE';
}

/** Converts an error of SQLite to a `StoreError`. Returns any other error, which is a bug, unchanged. */
export function toStoreError(error: unknown): unknown {
  if (isOutOfRange(error)) {
    return new StoreError('unavailable', 'SQLite: a number in the database is out of range: it was altered outside', {
      cause: error,
    });
  }
  // A lock of the vault, or a shutdown, has closed it.
  if (error instanceof Error && 'code' in error && error.code === 'ERR_INVALID_STATE')
    return new StoreError('unavailable', 'SQLite: the database is closed', { cause: error });
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return error;
  const code = error.errcode & PRIMARY_CODE;
  const isFatal = code === SQLITE_IOERR || code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
  return new StoreError(isFatal ? 'fatal' : 'unavailable', `SQLite: ${error.message}`, { cause: error });
}

/** Whether the content of the file is wrong: not for a full disk, a missing right or another failure of the system. */
export function isDamage(error: unknown): boolean {
  if (isOutOfRange(error)) return true;
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false;
  const code = error.errcode & PRIMARY_CODE;
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB || error.errcode === SQLITE_IOERR_SHORT_READ;
}

/** Whether the system failed, and not the content of the file. */
export function isOfSystem(error: unknown): boolean {
  if (isDamage(error) || !(error instanceof Error) || !('errcode' in error)) return false;
  return typeof error.errcode === 'number' && (error.errcode & PRIMARY_CODE) !== SQLITE_ERROR;
}

/** A database that keeps the index of its write-ahead log open, so that the locks on it last; see `reserveWalIndex`. */
class WalDatabase extends DatabaseSync {
  #walIndex: number | null = null;

  reserveWalIndex(file: string): void {
    this.#walIndex = reserveWalIndex(file);
  }

  override close(): void {
    super.close();
    if (this.#walIndex !== null) closeSync(this.#walIndex);
    this.#walIndex = null;
  }
}

/**
 * Opens the file, creating it if missing, and migrates its schema.
 * @throws StoreError `unavailable` if it is not a Leasehold file, has a newer schema, or is locked by another process.
 */
export function openDatabase(file: string): DatabaseSync {
  assertDiskSpace(file);
  const database = new WalDatabase(file, {
    timeout: BUSY_TIMEOUT_MS,
    defensive: true,
    enableDoubleQuotedStringLiterals: false,
  });
  try {
    // This is for a new file: a batch writes fewer pages than with the default of 4,096 bytes.
    database.exec('PRAGMA page_size = 8192; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;');
    const migrations = readMigrations('sqlite');
    assertLeaseholdFile(database, file, migrations.length);
    // A commit neither syncs (synchronous = NORMAL) nor checkpoints: `WalSync` and `Checkpointer` do so outside the
    // event loop.
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;',
    );
    migrate(database, migrations);
    truncateWal(database, file);
    database.reserveWalIndex(file);
    return database;
  } catch (error) {
    database.close();
    throw describeOpenError(file, toStoreError(error));
  }
}

/**
 * Writes the log of the previous process into the database and syncs it. WHY: its last writes may not be on disk, and
 * after a failed sync the kernel considers its pages clean and does not write them again.
 */
function truncateWal(database: DatabaseSync, file: string): void {
  const { busy } = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() ?? {};
  if (busy !== 0) throw new StoreError('unavailable', `${file} is in use by another program; end that first`);
}

export function describeOpenError(file: string, failure: unknown): unknown {
  if (!(failure instanceof StoreError) || failure.cause === undefined) return failure;
  return new StoreError(failure.kind, `${file}: ${failure.message}`, { cause: failure.cause });
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
}

/** Checks the file before the first write. @throws StoreError */
function assertLeaseholdFile(database: DatabaseSync, file: string, latest: number): void {
  const applicationId = pragma(database, 'application_id');
  const tables = Number(database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n']);
  if (applicationId !== APPLICATION_ID && (applicationId !== 0 || tables > 0)) {
    throw new StoreError('unavailable', `${file} is a database of another program`);
  }
  const version = pragma(database, 'user_version');
  if (version > latest) {
    throw new StoreError(
      'unavailable',
      `the database has schema ${version}, this Leasehold knows up to ${latest}: start the Leasehold that wrote it`,
    );
  }
  if (version === 0) return;
  const columns = database
    .prepare(`SELECT t.name || '.' || c.name AS name FROM sqlite_schema t JOIN pragma_table_info(t.name) c`)
    .all();
  assertColumns(
    columns.map(({ name }) => String(name)),
    version,
  );
}

function migrate(database: DatabaseSync, migrations: readonly Migration[]): void {
  for (const { number, sql } of migrations.slice(pragma(database, 'user_version'))) {
    inTransaction(database, () => {
      database.exec(`${sql}; PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${number};`);
    });
  }
}

/** Runs the work atomically; committed when it returns, but not synced. */
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
