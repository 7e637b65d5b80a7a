/**
 * Keeps the write-ahead log short without blocking the event loop, which writing 8 MiB here would block for 35 ms, and
 * longer on a slow disk. A thread, started on demand, writes its pages into the database: first while batches continue,
 * then the pages that were added in that time, while the next batch waits. After that SQLite restarts the log. The rest
 * is written after a second without a batch, and on close, so that a copy of the database file alone misses as little
 * as possible.
 * SOURCE: sqlite.org/wal.html, "Avoiding Excessively Large WAL Files".
 */
import { once } from 'node:events';
import { extname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { Histogram } from '../../core/measures.ts';
import { StoreError } from '../errors.ts';
import type { CheckpointFailure } from './checkpoint-worker.ts';

/** Pages in the write-ahead log that start a checkpoint: 32 MiB. */
const CHECKPOINT_THRESHOLD_FRAMES = 4000;
/** Batches wait at this multiple of the threshold: otherwise the log grows faster than the thread can write it. */
const MAX_BACKLOG_FACTOR = 3;
/** A check costs a few microseconds. */
const COMMITS_PER_CHECK = 16;
/** Time without a batch; longer than the pause between the requests of one caller. */
const IDLE_MS = 1000;

/** Threads in a row that did not start: then no later one will, and the log would grow until the disk is full. */
const MAX_LOST_THREADS = 100;

/** Parameters that tests shorten. */
export interface CheckpointOptions {
  readonly checkpointThreshold?: number;
  readonly idleMs?: number;
}

export class Checkpointer {
  readonly seconds = new Histogram();
  readonly #database: DatabaseSync;
  readonly #file: string;
  readonly #checkpointThreshold: number;
  readonly #idleMs: number;
  #quiet: NodeJS.Timeout | null = null;
  /** Only counts the pages. */
  readonly #frames: StatementSync;
  #thread: Worker | null = null;
  #commits = 0;
  /** Pages in the log at the last checkpoint. */
  #framesLeft = 0;
  /** Set during a checkpoint. Never rejects. */
  #running: Promise<void> | null = null;
  /** Set while writers must wait. Never rejects. */
  #writeBarrier: Promise<void> | null = null;
  #failure: StoreError | null = null;
  #lostThreads = 0;

  constructor(database: DatabaseSync, file: string, options: CheckpointOptions = {}) {
    this.#database = database;
    this.#file = file;
    this.#checkpointThreshold = options.checkpointThreshold ?? CHECKPOINT_THRESHOLD_FRAMES;
    this.#idleMs = options.idleMs ?? IDLE_MS;
    this.#frames = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  }

  get pendingPages(): number {
    const { log, checkpointed } = this.#count();
    return log - checkpointed;
  }

  /** @throws StoreError `fatal` if a checkpoint failed */
  async waitUntilWritable(): Promise<void> {
    if (this.#writeBarrier !== null) await this.#writeBarrier;
    if (this.#failure !== null) throw this.#failure;
  }

  /** Call after each commit that is not a batch. */
  committed(): void {
    this.#commits += 1;
    if (this.#commits < COMMITS_PER_CHECK) return;
    this.#commits = 0;
    const frames = this.#count().log;
    if (this.#running !== null) {
      if (frames >= this.#framesLeft + MAX_BACKLOG_FACTOR * this.#checkpointThreshold)
        this.#writeBarrier ??= this.#running;
      return;
    }
    // A reader of another program can prevent a restart of the log: then do not retry at every check.
    const isRestarted = frames < this.#framesLeft;
    if (frames < (isRestarted ? this.#checkpointThreshold : this.#framesLeft + this.#checkpointThreshold)) return;
    this.#framesLeft = frames;
    this.#running = this.#run(async () => {
      await this.#write();
      this.#writeBarrier ??= this.#running;
      await this.#write();
    });
  }

  /** Call after each batch: when no other follows, the rest of the log is written. */
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
    this.#framesLeft = log;
    // WHY not kept for the next checkpoint: the thread takes 4 MiB of the memory at rest.
    this.#running = this.#run(async () => {
      if (log > checkpointed) await this.#write();
      await this.#stop();
    });
  }

  #count(): { log: number; checkpointed: number } {
    try {
      const { log, checkpointed } = this.#frames.get() ?? {};
      return { log: Number(log), checkpointed: Number(checkpointed) };
    } catch {
      // The commit has succeeded; the next check counts again.
      return { log: 0, checkpointed: 0 };
    }
  }

  async close(): Promise<void> {
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    // A thread without a reference would let the process end before its response.
    this.#thread?.ref();
    await this.#running;
    // ORDER: the connection of the thread must be closed first. SQLite deletes the log with the last connection, and a
    // log that is left is applied to whatever file is at the path later, such as a restored one.
    await this.#stop();
    if (this.#failure !== null) return;
    try {
      // SQLite does this on close, but not while another program has the database open.
      this.#database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // The write-ahead log holds everything and is synced: the next startup retries.
    }
  }

  async #run(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      this.#failure = new StoreError('fatal', 'the write-ahead log could not be written into the database', { cause });
    } finally {
      this.#writeBarrier = null;
      this.#running = null;
    }
  }

  /** Checkpoints the current pages. If no thread can be started, or it ends, a later call does it. */
  async #write(): Promise<void> {
    const startedAt = performance.now();
    let response: CheckpointFailure[];
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage(null);
      response = (await once(this.#thread, 'message')) as CheckpointFailure[];
    } catch (cause) {
      if (++this.#lostThreads < MAX_LOST_THREADS) return;
      throw new Error('no thread could be started for it', { cause });
    }
    this.#lostThreads = 0;
    this.seconds.observe((performance.now() - startedAt) / 1000);
    const [failure] = response;
    if (typeof failure === 'string') throw new Error(failure);
  }

  #start(): Worker {
    const thread = new Worker(new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: this.#file,
    });
    const forget = (): void => {
      if (this.#thread === thread) this.#thread = null;
    };
    // WHY not only at its exit: after an error the thread no longer responds, and it ends a moment later.
    thread.on('error', forget);
    thread.once('exit', forget);
    thread.unref();
    return thread;
  }

  async #stop(): Promise<void> {
    const thread = this.#thread;
    this.#thread = null;
    await thread?.terminate();
  }
}
