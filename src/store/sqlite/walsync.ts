/**
 * Makes what was written durable: syncs the write-ahead log beside the loop, so that a slow disk holds up the answers that wait
 * for it, and nothing else. One sync at a time, which serves all that was written before it began.
 * SOURCE: sqlite.org/wal.html: a transaction survives the loss of power once its frames in the write-ahead log are synced.
 */
import { close, closeSync, constants, fdatasync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { StoreFailure } from '../port.ts';

/** Resolves when all that was written to the open file is on disk. */
export type SyncFile = (descriptor: number) => Promise<void>;

const closeFile = promisify(close);

export class WalSync {
  readonly #descriptor: number;
  readonly #syncFile: SyncFile;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #failure: StoreFailure | null = null;

  /** For the write-ahead log of the database, which must have one already. */
  constructor(databaseFile: string, syncFile: SyncFile = promisify(fdatasync)) {
    this.#syncFile = syncFile;
    this.#descriptor = openSync(`${databaseFile}-wal`, constants.O_RDWR);
    // Its name must be as durable as what is in it.
    const directory = openSync(dirname(databaseFile), constants.O_RDONLY);
    fsyncSync(directory);
    closeSync(directory);
  }

  /** Resolves when all that is written now is on disk. @throws StoreFailure `broken`, then and ever after */
  after(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#running === null) return this.#begin();
    // What is under way may have begun before the last write.
    this.#next ??= this.#running.then(() => this.#begin());
    return this.#next;
  }

  /** Resolves when nothing that is written waits for the disk any more. @throws as `after` */
  settled(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return this.#next ?? this.#running ?? Promise.resolve();
  }

  async close(): Promise<void> {
    await this.settled().catch(() => undefined);
    await closeFile(this.#descriptor);
  }

  #begin(): Promise<void> {
    this.#next = null;
    const running = this.#sync().finally(() => {
      if (this.#next === null) this.#running = null;
    });
    this.#running = running;
    return running;
  }

  async #sync(): Promise<void> {
    try {
      await this.#syncFile(this.#descriptor);
    } catch (error) {
      // Never tried again: the system takes the pages for written, and a second sync would succeed without them.
      this.#failure = new StoreFailure('broken', 'the write-ahead log could not be synced', { cause: error });
      throw this.#failure;
    }
  }
}
