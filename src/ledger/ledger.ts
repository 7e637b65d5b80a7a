/**
 * The one entry point through which anything is decided or changed. It runs operations in batches (group commit): collects the
 * waiting operations, loads their rows, decides each in order, chains, commits all in one transaction, and delivers the results
 * when it is durable. While the disk syncs, the next batch is decided on what the one before wrote.
 * INVARIANT: no result is delivered before its entry is on disk. If a commit fails every caller of the batch gets UNAVAILABLE,
 * and memory is read again from the store before the next batch. If a sync fails every waiting operation is rejected, and the
 * process stops.
 */
import type { Requester } from '../core/agent.ts';
import type { Operation } from '../core/operation.ts';
import { NOOP } from '../core/operations/lifecycle.ts';
import { type StoreError, storeErrorOf } from '../store/errors.ts';
import { type BatchParts, BatchRunner } from './batch-runner.ts';
import type { OperationResult } from './decide-batch.ts';
import {
  answer,
  FairQueue,
  fairnessKeyOf,
  OVERLOADED,
  outcomeUnknown,
  type QueuedOperation,
  refuse,
  unavailable,
} from './fair-queue.ts';
import { PendingCommits } from './pending-commits.ts';
import type { VaultState } from './vault-state.ts';

export interface LedgerParts extends BatchParts {
  /** Called once, when the storage failed in a way that must stop the process. */
  readonly onStorageFailure: (failure: StoreError) => void;
  /** Called with the cause for each batch that could not be committed, for the service's log. */
  readonly onFailedBatch: (error: unknown) => void;
}

/** Batches per round of the event loop. */
const MAX_BATCHES_PER_TICK = 4;
/** Minimum batch while a sync is in flight. WHY: a smaller one would wait for that sync anyway and still pay the fixed cost. */
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
   * Resolves to the operation's reply after its batch is on disk. `sizeBytes` is about what the operation holds in memory.
   * @throws the operation's error, or UNAVAILABLE where it could not be recorded or too much waits
   */
  submit<R>(operation: Operation<R>, sizeBytes = 0): Promise<R> {
    return new Promise((resolve, reject) => {
      const settle = (answer: OperationResult): void => {
        // The reply is this operation's: `decideBatch` keeps the order.
        if (answer.kind === 'reply') resolve(answer.reply as R);
        else reject(answer.error);
      };
      if (this.#state === 'broken') throw unavailable();
      this.#queue.add({ operation, sizeBytes, settle });
      this.#schedule();
    });
  }

  /** Rejects early what the queue would reject anyway. @throws UNAVAILABLE */
  assertCapacity(requester: Requester): void {
    if (!this.#queue.hasCapacityFor(fairnessKeyOf(requester))) throw OVERLOADED;
  }

  /**
   * Resolves when agents and policies in memory are as new as the last commit before this call. Immediate if no other node writes
   * to the store. @throws StoreError, UNAVAILABLE
   */
  async refresh(): Promise<void> {
    if (!(await this.#batches.isFresh())) await this.submit(NOOP);
  }

  /**
   * Runs a batch if none ran for so long, so that a node without callers follows the log of the others. Never rejects.
   */
  async pollLog(idleMs: number): Promise<void> {
    const isIdle = performance.now() - this.#lastBatchAt >= idleMs;
    if (isIdle && this.#state === 'ok' && !this.#isRunning) await this.submit(NOOP).catch(() => undefined);
  }

  /** Resolves when nothing waits and no batch runs. */
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
   * WHY: operations that arrive in consecutive rounds of the event loop share a batch and its sync. The batch starts after a round
   * without a new one; a caller that is alone waits for one round, some microseconds.
   */
  #collect(before: number): void {
    const { length } = this.#queue;
    if (length > before && !this.#queue.isBatchFull) setImmediate(() => this.#collect(length));
    else void this.#run();
  }

  async #run(): Promise<void> {
    // WHY more than one: under load a round of the event loop brings a thousand requests, and one batch holds few of them.
    for (let batches = 0; batches < MAX_BATCHES_PER_TICK; batches++) {
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

  /** Resolves when the batch is written: the next one may begin while the results of this one wait for the disk. */
  async #runBatch(waiting: readonly QueuedOperation[]): Promise<void> {
    try {
      if (this.#state === 'broken') throw unavailable();
      if (this.#state === 'failing') {
        await this.#batches.recover();
        this.#state = 'ok';
      }
      this.#lastBatchAt = performance.now();
      const { answers, durable } = await this.#batches.run(waiting.map(({ operation }) => operation));
      // A batch that wrote nothing may have read what still waits for the disk.
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
    const failure = storeErrorOf(error);
    // After another failure of the store the batch may have reached the disk or the server.
    const isKnown = failure === null || failure.kind === 'unavailable';
    refuse(waiting, isKnown ? unavailable : outcomeUnknown);
    if (this.#state === 'broken') return;
    this.#state = 'failing';
    if (failure?.kind === 'fatal') {
      this.#state = 'broken';
      refuse(this.#queue.takeAll());
      this.#settleIdle();
      this.#parts.onStorageFailure(failure);
      return;
    }
    this.#tryAgainLater();
  }

  /** Without callers no batch would record the summary. */
  #summariseLater(): void {
    this.#summary ??= setTimeout(() => {
      this.#summary = null;
      if (this.#state === 'ok') this.submit(NOOP).catch(() => undefined);
    }, SUMMARY_INTERVAL_MS).unref();
  }

  /** Without callers nothing else would notice that the store works again. */
  #tryAgainLater(): void {
    this.#recovery ??= setTimeout(() => {
      this.#recovery = null;
      if (this.#state === 'failing') this.submit(NOOP).catch(() => undefined);
    }, RECOVERY_INTERVAL_MS).unref();
  }
}
