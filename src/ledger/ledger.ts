/**
 * The one door through which anything is decided or changed. It takes operations in turns: gather what is waiting, load what
 * they need, decide each in order, chain, commit all in one transaction; answer everybody when it is durable. While the disk
 * works the next turn is decided, on what the one before wrote.
 * INVARIANT: nothing is answered before its entry is on disk. If a commit fails every caller of the turn gets UNAVAILABLE, and
 * memory is read again from the store before the next turn. If a sync fails everybody who waits is refused, and the process
 * stops.
 */
import type { Operation } from '../core/operation.ts';
import { NOOP } from '../core/operations/lifecycle.ts';
import type { Secret } from '../core/secret.ts';
import { StoreError } from '../store/store.ts';
import { type BatchParts, BatchRunner } from './batch-runner.ts';
import type { OperationResult } from './decide-batch.ts';
import {
  answer,
  FairQueue,
  OVERLOADED,
  outcomeUnknown,
  type QueuedOperation,
  refuse,
  unavailable,
} from './fair-queue.ts';
import { PendingCommits } from './pending-commits.ts';
import type { VaultState } from './vault-state.ts';

export interface LedgerParts extends BatchParts {
  /** Called once when the storage failed so that the process must stop. */
  readonly onStorageFailure: (failure: StoreError) => void;
  /** Called for each turn that could not be committed, with the cause, for the service's log. */
  readonly onFailedBatch: (error: unknown) => void;
}

/** Turns between two looks at the sockets. */
const MAX_BATCHES_PER_TICK = 4;
/** Worth a turn while another waits for the disk. WHY: it would wait for the next sync anyway, and a turn costs as much as several. */
const MIN_BATCH_WHILE_SYNCING = 32;

const RECOVERY_INTERVAL_MS = 1000;
const SUMMARY_INTERVAL_MS = 5000;

export type LedgerState = 'ok' | 'failing' | 'broken';

export class Ledger {
  readonly #parts: LedgerParts;
  readonly #queue: FairQueue;
  readonly #batches: BatchRunner;
  #state: LedgerState = 'ok';
  #isRunning = false;
  #lastBatchAt = 0;
  #recovery: NodeJS.Timeout | null = null;
  #summary: NodeJS.Timeout | null = null;
  readonly #pendingCommits = new PendingCommits(() => this.#schedule());
  #whenIdle: ((answered: Promise<void>) => void)[] = [];

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#batches = new BatchRunner(parts);
    this.#queue = new FairQueue(parts.store.isMultiWriter);
  }

  get memory(): VaultState {
    return this.#batches.memory;
  }

  get state(): LedgerState {
    return this.#state;
  }

  /**
   * Resolves after the operation's turn is on disk; `value` is what the operation lent.
   * @throws the operation's fault, or UNAVAILABLE where it could not be recorded or too much waits.
   */
  submit<R>(operation: Operation<R>): Promise<{ reply: R; value: Secret | null }> {
    return new Promise((resolve, reject) => {
      const settle = (answer: OperationResult): void => {
        // The answer is this operation's own: `decideTurn` keeps their order.
        if (answer.kind === 'reply') resolve({ reply: answer.reply as R, value: answer.value });
        else reject(answer.error);
      };
      if (this.#state === 'broken') throw unavailable();
      this.#queue.add({ operation, settle });
      this.#schedule();
    });
  }

  /** Sheds what would be refused anyway, before anything is done for it. @throws UNAVAILABLE */
  assertCapacity(origin: string): void {
    if (!this.#queue.hasCapacityFor(origin)) throw OVERLOADED;
  }

  /**
   * Resolves when agents and policies in memory are as new as what was committed when this was asked. At once where nobody else
   * writes to the store. @throws StoreFailure, UNAVAILABLE
   */
  async refresh(): Promise<void> {
    if (!(await this.#batches.isFresh())) await this.submit(NOOP);
  }

  /**
   * Takes a turn where none was taken for so long, so that a node that nobody asks knows the log that it would answer from. Never
   * rejects.
   */
  async pollLog(idleMs: number): Promise<void> {
    const isIdle = performance.now() - this.#lastBatchAt >= idleMs;
    if (isIdle && this.#state === 'ok' && !this.#isRunning) await this.submit(NOOP).catch(() => undefined);
  }

  /** Resolves when nothing waits and no turn runs. */
  idle(): Promise<void> {
    if (!this.#isRunning && this.#queue.isEmpty) return this.#pendingCommits.last;
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  #schedule(): void {
    if (this.#isRunning || this.#queue.isEmpty || !this.#isWorthABatch) return;
    this.#isRunning = true;
    setImmediate(() => this.#collect(0));
  }

  get #isWorthABatch(): boolean {
    return this.#pendingCommits.isEmpty || this.#queue.length >= MIN_BATCH_WHILE_SYNCING;
  }

  /**
   * WHY: what arrives in a row of rounds of the loop shares a turn, and its one sync. It begins when a round brought nothing new:
   * a caller alone waits for one round, some microseconds.
   */
  #collect(before: number): void {
    const { length } = this.#queue;
    if (length > before && !this.#queue.isBatchFull) setImmediate(() => this.#collect(length));
    else void this.#run();
  }

  async #run(): Promise<void> {
    // WHY more than one: under a flood a round of the loop brings a thousand requests, and one turn answers few of them.
    for (let turns = 0; turns < MAX_BATCHES_PER_TICK; turns++) {
      await this.#runBatch(this.#queue.takeBatch());
      if (this.#queue.isEmpty || !this.#isWorthABatch) break;
    }
    this.#isRunning = false;
    if (this.#parts.denials.isWaiting) this.#summariseLater();
    this.#schedule();
    this.#settleIdle();
  }

  #settleIdle(): void {
    if (this.#isRunning || !this.#queue.isEmpty) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve(this.#pendingCommits.last);
  }

  /** Ends when the turn is written: the next one may begin while this one's answers wait for the disk. */
  async #runBatch(waiting: readonly QueuedOperation[]): Promise<void> {
    try {
      if (this.#state === 'broken') throw unavailable();
      if (this.#state === 'failing') {
        await this.#batches.recover();
        this.#state = 'ok';
      }
      this.#lastBatchAt = performance.now();
      const { answers, durable } = await this.#batches.run(waiting.map(({ operation }) => operation));
      // Where nothing was written, what was seen may be waiting for the disk.
      const answered = (durable ?? this.#pendingCommits.last).then(
        () => (this.#state === 'broken' ? refuse(waiting, outcomeUnknown) : answer(waiting, answers)),
        (error: unknown) => this.#fail(error, waiting),
      );
      await this.#pendingCommits.add(answered);
    } catch (error) {
      this.#fail(error, waiting);
    }
  }

  #fail(error: unknown, waiting: readonly QueuedOperation[]): void {
    this.#parts.onFailedBatch(error);
    // What reached the disk, or the server, before it failed may be there at the next start.
    const isKnown = !(error instanceof StoreError) || error.kind === 'unavailable';
    refuse(waiting, isKnown ? unavailable : outcomeUnknown);
    if (this.#state === 'broken') return;
    this.#state = 'failing';
    if (error instanceof StoreError && error.kind === 'fatal') {
      this.#state = 'broken';
      refuse(this.#queue.takeAll());
      this.#settleIdle();
      this.#parts.onStorageFailure(error);
      return;
    }
    this.#tryAgainLater();
  }

  /** Without callers no turn would record the summary. */
  #summariseLater(): void {
    this.#summary ??= setTimeout(() => {
      this.#summary = null;
      if (this.#state === 'ok') this.submit(NOOP).catch(() => undefined);
    }, SUMMARY_INTERVAL_MS).unref();
  }

  /** Without callers nothing else would notice that the store is back. */
  #tryAgainLater(): void {
    this.#recovery ??= setTimeout(() => {
      this.#recovery = null;
      if (this.#state === 'failing') this.submit(NOOP).catch(() => undefined);
    }, RECOVERY_INTERVAL_MS).unref();
  }
}
