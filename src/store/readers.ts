/**
 * Opens a vault that is in use, for a thread: its log for verification, and one snapshot of it for a backup. A snapshot
 * holds no lock on which a writer waits: SQLite's own backup copies the pages of one read transaction into a private
 * file; PostgreSQL reads one transaction.
 */
import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { writeNewFile } from '../platform/private-files.ts';
import type { StoredKeys } from '../vault/keys/keyset.ts';
import { readEntries, readHead } from './audit-log.ts';
import { StoreError } from './errors.ts';
import { readMigrations } from './migrations.ts';
import type { LogReader } from './port.ts';
import { Hosts } from './postgres/database-hosts.ts';
import { Pool } from './postgres/pool.ts';
import { PostgresSource } from './postgres/transfer.ts';
import { BUSY_TIMEOUT_MS, toStoreError } from './sqlite/database.ts';
import { SqliteLogFile } from './sqlite/log-file.ts';
import { SqliteSource } from './sqlite/transfer.ts';
import type { LogLocation } from './stored-data.ts';
import { readMetadata, type TransferSource, type VaultMetadata } from './transfer.ts';
import { readStoredKeys } from './vault-metadata.ts';

export interface BackupSource {
  readonly reader: TransferSource;
  readonly metadata: VaultMetadata;
  /** The key slots, which open the vault, and the keyset. */
  readonly keys: StoredKeys;
  readonly schema: number;
}

/** 1 MiB: a step takes a few milliseconds, and a writer's sync waits behind one step at most. */
const PAGES_PER_STEP = 128;
/** The space that stays free on the disk of the server, which stops when it cannot write its audit log. */
const MIN_FREE_BYTES = 256 * 1024 * 1024;

/**
 * `copy` does not exist; the caller deletes it, even after an error. Only the embedded store uses it.
 * @throws StoreError
 */
export async function openBackupSource(location: LogLocation, copy: string): Promise<BackupSource> {
  const reader =
    location.kind === 'sqlite'
      ? await copyInUse(location.file, copy)
      : await PostgresSource.open(location.address, location.seen);
  try {
    const { highestSeq } = await reader.run(readHead());
    const metadata = await reader.run(readMetadata(highestSeq));
    const keys = await reader.run(readStoredKeys());
    if (metadata === null) throw new StoreError('unavailable', "the vault's record is missing from the database");
    const schema = readMigrations(location.kind).length;
    return { reader, metadata, keys, schema };
  } catch (error) {
    reader.close();
    throw error;
  }
}

/**
 * WHY a read transaction around the backup: without it a commit of the server between two steps would start the
 * backup again. WHY a copy: its reader may take as long as a slow client needs, and the write-ahead log of the server
 * grows only while the pages are copied.
 */
async function copyInUse(file: string, copy: string): Promise<TransferSource> {
  assertSpace(file);
  writeNewFile(copy, '');
  try {
    const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    try {
      database.exec('BEGIN; SELECT 1 FROM vault');
      await backup(database, copy, { rate: PAGES_PER_STEP });
    } finally {
      database.close();
    }
    return new SqliteSource(copy);
  } catch (error) {
    throw toStoreError(error);
  }
}

/** @throws StoreError if the copy would leave the server too little space */
function assertSpace(file: string): void {
  const sizeBytes = [file, `${file}-wal`].reduce(
    (sum, each) => sum + (statSync(each, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
  const { bavail, bsize } = statfsSync(dirname(file));
  if (bavail * bsize >= sizeBytes + MIN_FREE_BYTES) return;
  throw new StoreError(
    'unavailable',
    'the disk of the data directory has too little free space for a copy of the database',
  );
}

export function openLogReader(location: LogLocation): LogReader {
  if (location.kind === 'sqlite') return new SqliteLogFile(location.file);
  const pool = new Pool(new Hosts(location.address, location.seen), 1, 'verifying');
  return {
    readEntries: (fromSeq, toSeq, limit) =>
      pool.read((connection) => connection.run(readEntries(fromSeq, toSeq, limit))),
    close: () => pool.close(),
  };
}
