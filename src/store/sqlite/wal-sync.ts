/**
 * Syncs the write-ahead log outside the event loop, so that a slow disk delays only the responses that wait for it. One
 * sync runs at a time and serves all previous writes. Data is durable when, after the sync, the files are still at
 * their paths and the rollback marker names the newest entry. SOURCE: sqlite.org/wal.html: a transaction survives a
 * power failure once its frames in the write-ahead log are synced.
 */
import { close, closeSync, constants, fdatasync, fsyncSync, openSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { Histogram } from '../../core/measures.ts';
import { errnoSuffix } from '../../platform/errors.ts';
import { StoreError } from '../errors.ts';
import type { LastEntry } from '../stored-data.ts';

/** Resolves when all previous writes to the open file are on disk. */
export type SyncFile = (descriptor: number) => Promise<void>;

/**
 * Keeps the newest durable entry outside the database. Called for one entry at a time, in the order of the audit log.
 */
export type KeepNewest = (entry: Pick<LastEntry, 'seq' | 'hmac'>) => Promise<void>;

/** The time between two checks of the files if no sync ran. */
const CHECK_INTERVAL_MS = 100;

const closeFile = promisify(close);

export class WalSync {
  readonly syncSeconds = new Histogram();
  readonly #descriptor: number;
  readonly #syncFile: SyncFile;
  readonly #keepNewest: KeepNewest | null;
  readonly #files: OpenedFiles;
  #checkedAt = 0;
  #newest: Pick<LastEntry, 'seq' | 'hmac'> | null = null;
  #kept: Pick<LastEntry, 'seq' | 'hmac'> | null = null;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #failure: StoreError | null = null;

  /** The write-ahead log of the database must exist. */
  constructor(databaseFile: string, syncFile: SyncFile = promisify(fdatasync), keepNewest: KeepNewest | null = null) {
    this.#syncFile = syncFile;
    this.#keepNewest = keepNewest;
    this.#files = new OpenedFiles([databaseFile, `${databaseFile}-wal`]);
    this.#descriptor = openSync(`${databaseFile}-wal`, constants.O_RDWR);
    // The directory entry must be durable too.
    const directory = openSync(dirname(databaseFile), constants.O_RDONLY);
    fsyncSync(directory);
    closeSync(directory);
  }

  /** Checks the files every 100 ms at most. @throws StoreError `fatal`, and again on every later call */
  assertInPlace(): void {
    if (this.#failure !== null) throw this.#failure;
    if (performance.now() - this.#checkedAt >= CHECK_INTERVAL_MS) this.#checkFiles();
  }

  /**
   * Resolves when all previous writes are durable; `newest` is their newest entry, if they have one.
   * @throws StoreError `fatal`, and again on every later call
   */
  flush(newest?: Pick<LastEntry, 'seq' | 'hmac'>): Promise<void> {
    if (newest !== undefined) this.#newest = newest;
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#running === null) return this.#begin();
    // The running sync may have begun before the last write.
    this.#next ??= this.#running.then(() => this.#begin());
    return this.#next;
  }

  /** Resolves when no write waits for the disk. @throws as `flush` */
  idle(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return this.#next ?? this.#running ?? Promise.resolve();
  }

  async close(): Promise<void> {
    await this.idle().catch(() => undefined);
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
    const newest = this.#newest;
    const startedAt = performance.now();
    try {
      await this.#syncFile(this.#descriptor);
      this.syncSeconds.observe((performance.now() - startedAt) / 1000);
    } catch (error) {
      // Never retried: the kernel considers the pages clean, and a second sync would succeed without writing them.
      throw this.#fail('the write-ahead log could not be synced', error);
    }
    this.#checkFiles();
    if (this.#keepNewest === null || newest === null || newest === this.#kept) return;
    try {
      // ORDER: after the sync. A rollback marker for an entry that a crash lost would lock the vault.
      await this.#keepNewest(newest);
      this.#kept = newest;
    } catch (error) {
      throw this.#fail('the rollback marker could not be written', error);
    }
  }

  #checkFiles(): void {
    try {
      this.#files.assertInPlace();
      this.#checkedAt = performance.now();
    } catch (error) {
      throw this.#fail('the files of the database could not be checked', error);
    }
  }

  #fail(what: string, cause: unknown): StoreError {
    this.#failure ??=
      cause instanceof StoreError ? cause : new StoreError('fatal', `${what}${errnoSuffix(cause)}`, { cause });
    return this.#failure;
  }
}

/**
 * Checks that the files that the process has open are still the files at their paths. Data that is written to a file
 * that was removed or replaced is lost when the process ends, and no write fails.
 */
export class OpenedFiles {
  readonly #opened: ReadonlyMap<string, Stats>;

  /** Create it when the files are opened. */
  constructor(paths: readonly string[]) {
    this.#opened = new Map(paths.map((path) => [path, statSync(path)]));
  }

  /** Takes a few microseconds per file. @throws StoreError `fatal` if one was removed, moved or replaced */
  assertInPlace(): void {
    for (const [path, opened] of this.#opened) {
      if (isSame(path, opened)) continue;
      throw new StoreError('fatal', `${path} was removed or replaced under the running server`);
    }
  }
}

function isSame(path: string, { dev, ino }: Stats): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.dev === dev && found.ino === ino;
  } catch {
    return false;
  }
}
