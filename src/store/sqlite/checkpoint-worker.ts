/** The thread that checkpoints the write-ahead log over a separate connection. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { StoreError } from '../errors.ts';
import { toStoreError } from './database.ts';

let database: DatabaseSync | null = null;
let checkpoint: StatementSync | null = null;

function open(): StatementSync {
  database = new DatabaseSync(String(workerData), { timeout: 2000 });
  database.exec('PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = 0;');
  // PASSIVE neither waits for locks nor blocks readers and writers.
  return database.prepare('PRAGMA wal_checkpoint(PASSIVE)');
}

/** WHY: where descriptors were missing, SQLite has opened the file for reading only, and no retry would write. */
function reopenLater(): void {
  checkpoint = null;
  database?.close();
  database = null;
}

/** The response to each message: null when the pages are written and synced. */
export type CheckpointFailure = string | null;

function run(): CheckpointFailure {
  try {
    checkpoint ??= open();
    checkpoint.get();
    return null;
  } catch (thrown) {
    reopenLater();
    const error = toStoreError(thrown);
    // A busy database, or one that cannot be opened, is retried with the next pages.
    const isFatal = !(error instanceof StoreError) || error.kind === 'fatal';
    return isFatal ? String(error) : null;
  }
}

parentPort?.on('message', () => parentPort?.postMessage(run()));
