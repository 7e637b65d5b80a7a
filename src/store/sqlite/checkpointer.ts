/**
 * Keeps the write-ahead log short without stopping the loop. Its pages are written into the database by a thread, which comes
 * when there is work and goes when there is none: first beside the turns, then what came meanwhile, while the next turn waits.
 * After that SQLite begins the log anew. What is left is written when no batch was committed for a second, and at the end, so that
 * a copy of the database alone lacks as little as possible. SOURCE: sqlite.org/wal.html, "Avoiding Excessively Large WAL Files".
 */
import { extname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { StoreError } from '../store.ts';
import type { Checkpointed } from './checkpoint-worker.ts';

/** Pages in the write-ahead log that are worth it: 32 MiB. */
const WORTH_FRAMES = 4000;
/** Where so many times as much has come meanwhile, turns wait: else the log of a busy service outruns its thread. */
const MAX_BACKLOG_FACTOR = 3;
/** To look costs some microseconds. */
const COMMITS_BETWEEN_LOOKS = 16;
const THREAD_IDLE_MS = 30_000;
/** Without a batch: longer than between the requests of a caller who has more. */
const IDLE_MS = 1000;
/** In a row: whoever takes all file descriptors for a while only makes the log longer. */
const MOST_LOST_THREADS = 100;

/** For tests. */
export interface CheckpointOptions {
  readonly checkpointThreshold?: number;
  readonly idleMs?: number;
}

export class Checkpointer {
  readonly #database: DatabaseSync;
  readonly #file: string;
  readonly #worthFrames: number;
  readonly #idleMs: number;
  #quiet: NodeJS.Timeout | null = null;
  /** Counts the pages, and does nothing else. */
  readonly #frames: StatementSync;
  #thread: Worker | null = null;
  #idle: NodeJS.Timeout | null = null;
  #lostThreads = 0;
  #commits = 0;
  /** In the log when it was last written into the database. */
  #framesLeft = 0;
  /** While pages are written into the database. Never rejects. */
  #running: Promise<void> | null = null;
  /** While whoever would write waits. Never rejects. */
  #writeBarrier: Promise<void> | null = null;
  #failure: StoreError | null = null;

  constructor(database: DatabaseSync, file: string, options: CheckpointOptions = {}) {
    this.#database = database;
    this.#file = file;
    this.#worthFrames = options.checkpointThreshold ?? WORTH_FRAMES;
    this.#idleMs = options.idleMs ?? IDLE_MS;
    this.#frames = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  }

  /** Resolves when a turn may be opened. @throws StoreFailure `broken` where pages could not be written */
  async pass(): Promise<void> {
    if (this.#writeBarrier !== null) await this.#writeBarrier;
    if (this.#failure !== null) throw this.#failure;
  }

  /** To be told of every other commit. */
  committed(): void {
    this.#commits += 1;
    if (this.#commits < COMMITS_BETWEEN_LOOKS) return;
    this.#commits = 0;
    const frames = this.#count().log;
    if (this.#running !== null) {
      if (frames >= this.#framesLeft + MAX_BACKLOG_FACTOR * this.#worthFrames) this.#writeBarrier ??= this.#running;
      return;
    }
    // A reader of another program can keep the log from beginning anew: then not at every look.
    const isAnew = frames < this.#framesLeft;
    if (frames < (isAnew ? this.#worthFrames : this.#framesLeft + this.#worthFrames)) return;
    this.#framesLeft = frames;
    this.#running = this.#run(async () => {
      await this.#write();
      this.#writeBarrier ??= this.#running;
      await this.#write();
    });
  }

  /** To be told of every commit of a batch: when none follows, what is left of the log is written. */
  batchCommitted(): void {
    this.committed();
    if (this.#quiet === null) this.#quiet = setTimeout(() => this.#finish(), this.#idleMs).unref();
    else this.#quiet.refresh();
  }

  #finish(): void {
    if (this.#failure !== null) return;
    if (this.#running !== null) {
      this.#quiet?.refresh();
      return;
    }
    const { log, checkpointed } = this.#count();
    if (log === checkpointed) return;
    this.#framesLeft = log;
    this.#running = this.#run(() => this.#write());
  }

  /** Pages in the log, and how many of them are in the database. */
  #count(): { log: number; checkpointed: number } {
    try {
      const { log, checkpointed } = this.#frames.get() ?? {};
      return { log: Number(log), checkpointed: Number(checkpointed) };
    } catch {
      // What was committed is committed; the next look counts again.
      return { log: 0, checkpointed: 0 };
    }
  }

  async close(): Promise<void> {
    if (this.#idle !== null) clearTimeout(this.#idle);
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    await this.#thread?.terminate();
    if (this.#failure !== null) return;
    try {
      // Closing does it too, but not while another program has the database open.
      this.#database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // All of it is in the write-ahead log, and synced: the next start tries again.
    }
  }

  async #run(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#writeBarrier = null;
      this.#running = null;
    }
  }

  #fail(cause: unknown): void {
    this.#failure = new StoreError('broken', 'the write-ahead log could not be written into the database', { cause });
  }

  /** Has the thread write all pages that are in the log now. Where it can't even begin, they are left to the next time. */
  async #write(): Promise<void> {
    if (this.#idle !== null) clearTimeout(this.#idle);
    const answer = await this.#ask();
    this.#lostThreads = answer === null ? this.#lostThreads + 1 : 0;
    const failure = this.#lostThreads < MOST_LOST_THREADS ? answer?.failure : 'its thread ends again and again';
    if (typeof failure === 'string') throw new Error(failure);
    this.#idle = setTimeout(() => this.#stop(), THREAD_IDLE_MS).unref();
  }

  /** Null where no thread could be had, or it ended before it answered. */
  async #ask(): Promise<Checkpointed | null> {
    try {
      this.#thread ??= this.#start();
    } catch {
      return null;
    }
    const thread = this.#thread;
    return new Promise((resolve) => {
      const lost = (): void => {
        this.#thread = null;
        resolve(null);
      };
      thread.once('exit', lost);
      thread.once('message', (answer: Checkpointed) => {
        thread.off('exit', lost);
        resolve(answer);
      });
      thread.postMessage(null);
    });
  }

  #start(): Worker {
    const thread = new Worker(new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: this.#file,
    });
    // It ends after it.
    thread.on('error', () => undefined);
    thread.unref();
    return thread;
  }

  #stop(): void {
    void this.#thread?.terminate();
    this.#thread = null;
  }
}
