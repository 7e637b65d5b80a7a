/** The thread that writes the pages of the write-ahead log into the database, over a connection of its own. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { StoreError } from '../store.ts';
import { toFailure } from './database.ts';

/** What is answered to every message, once the pages are written and synced; or why they are not. */
export type Checkpointed = { readonly failure: string | null };

let checkpoint: StatementSync | null = null;

function open(): StatementSync {
  const database = new DatabaseSync(String(workerData), { timeout: 2000 });
  database.exec('PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = 0;');
  // PASSIVE waits for nobody and keeps nobody waiting.
  return database.prepare('PRAGMA wal_checkpoint(PASSIVE)');
}

function run(): Checkpointed {
  try {
    checkpoint ??= open();
    checkpoint.get();
    return { failure: null };
  } catch (thrown) {
    const error = toFailure(thrown);
    // A database that is busy, or can't be opened, is tried again with the next pages.
    const isBroken = !(error instanceof StoreError) || error.kind === 'broken';
    return { failure: isBroken ? String(error) : null };
  }
}

parentPort?.on('message', () => parentPort?.postMessage(run()));
