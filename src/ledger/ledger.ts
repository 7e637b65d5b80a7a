/**
 * The only entry point for decisions and changes. It runs operations in batches (group commit): it collects the waiting
 * operations, loads their rows, decides each in order, chains the entries, commits all in one transaction, and delivers
 * the results when the transaction is durable. While the disk syncs, the next batch is decided on the state that the
 * previous one wrote.
 * INVARIANT: no result is delivered before its entry is on disk. If a commit fails every caller of the batch receives
 * UNAVAILABLE, and memory is read again from the store before the next batch. If a sync fails every waiting operation
 * is rejected, and the process stops.
 */
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { OperationAuth } from '../core/identity.ts';
import type { Operation } from '../core/operation.ts';
import { type StoreError, storeErrorOf } from '../store/errors.ts';
import { NOOP } from '../vault/audit/lifecycle.ts';
import { type BatchParts, BatchRunner, type DecidedReads } from './batch-runner.ts';
import type { OperationResult } from './decide-batch.ts';
import {
  deliver,
  FairQueue,
  fairnessKeyOf,
  outcomeUnknown,
  type QueuedOperation,
  rejectAll,
  unavailable,
} from './fair-queue.ts';
import { LedgerMeasures } from './ledger-measures.ts';
import type { VaultState } from './vault-state.ts';

export interface LedgerParts extends BatchParts {
  /** Called once, after a storage failure that must stop the process. */
  readonly onStorageFailure: (failure: StoreError) => void;
  /** Called with the cause for each batch that could not be committed, for the server log. */
  readonly onFailedBatch: (error: unknown) => void;
}

const MAX_BATCHES_PER_TICK = 4;
/**
 * Minimum batch while a sync is in flight. WHY: a smaller one would wait for that sync anyway and still pay the fixed
 * cost.
 */
const MIN_BATCH_WHILE_SYNCING = 32;

/** How long an operation waits for another with which it can share a batch. */
const MAX_DEFERRAL_MS = 20;
const RECOVERY_INTERVAL_MS = 1000;

/**
 * `failing`: the last batch was not committed, and the ledger retries. `failed`: the storage failed, and the process
 * must stop.
 */
export type LedgerState = 'ok' | 'failing' | 'failed';

export class Ledger {
  readonly #parts: LedgerParts;
  readonly #queue: FairQueue;
  readonly #batches: BatchRunner;
  /** The reads that the next query serves, and their outcome. */
  readonly #unread: Operation<unknown>[] = [];
  #nextReads: Promise<DecidedReads> | null = null;
  #lastReads: Promise<unknown> = Promise.resolve();
  readonly measures = new LedgerMeasures();
  #state: LedgerState = 'ok';
  #isRunning = false;
  #isClosed = false;
  #lastBatchAt = 0;
  #recovery: NodeJS.Timeout | null = null;
  readonly #pendingCommits = new PendingCommits(() => this.#schedule());
  /** Submit the operations that wait for another one. */
  #deferred: (() => void)[] = [];
  /**
   * The deferred operations until they are settled. WHY: a caller that has the response of one expects to read its
   * entry.
   */
  readonly #unawaited = new Set<Promise<unknown>>();
  #whenIdle: ((delivered: Promise<void>) => void)[] = [];

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#batches = new BatchRunner(parts, this.measures);
    this.#queue = new FairQueue(parts.store.isMultiWriter);
  }

  get memory(): VaultState {
    return this.#batches.memory;
  }

  get state(): LedgerState {
    return this.#state;
  }

  get queue(): Pick<FairQueue, 'length' | 'rejections'> {
    return this.#queue;
  }

  /**
   * Resolves to the operation's reply after its batch is on disk. `sizeBytes` is the approximate memory that the
   * operation holds.
   * @throws the operation's error; UNAVAILABLE if it could not be recorded or the queue is full
   */
  submit<R>(operation: Operation<R>, sizeBytes = 0): Promise<R> {
    this.#submitDeferred();
    return new Promise((resolve, reject) => {
      const settle = (result: OperationResult): void => {
        // The reply has the operation's type, because `decideBatch` keeps the order of operations.
        if (result.kind === 'reply') resolve(result.reply as R);
        else reject(result.error);
      };
      if (this.#isClosed || this.#state === 'failed') throw unavailable();
      this.#queue.add({ operation, sizeBytes, settle });
      this.#schedule();
    });
  }

  /**
   * Decides an operation that changes nothing and is recorded only if it is rejected, without the lock that serializes
   * nodes. Sees every commit before this call. A rejection is decided again in a batch, which records it. @throws as
   * `submit`
   */
  async read<R>(operation: Operation<R>): Promise<R> {
    if (this.#unawaited.size > 0) await this.#settleUnawaited();
    if (this.#isClosed || this.#state !== 'ok') return this.submit(operation);
    this.#unread.push(operation);
    this.#nextReads ??= this.#decideReads();
    const replies = await repliesOf(this.#nextReads);
    if (replies === null || !replies.has(operation)) return this.submit(operation);
    // The reply has the operation's type, because it is the operation's.
    return replies.get(operation) as R;
  }

  /** One query at a time, for all reads that wait for the previous one or arrive in one iteration of the event loop. */
  async #decideReads(): Promise<DecidedReads> {
    await this.#lastReads;
    await nextIteration();
    const decided = this.#batches.read(this.#unread.splice(0));
    this.#nextReads = null;
    this.#lastReads = decided.catch(() => undefined);
    return decided;
  }

  /**
   * Submits an operation without a waiting caller: it joins the batch of the next one, or starts one soon.
   * WHY: alone it would cost a sync, for which the next operation would have to wait.
   */
  submitWithNext<R>(operation: Operation<R>): Promise<R> {
    const { promise, resolve } = Promise.withResolvers<R>();
    if (this.#deferred.length === 0) setTimeout(() => this.#submitDeferred(), MAX_DEFERRAL_MS);
    this.#deferred.push(() => resolve(this.submit(operation)));
    const settled: Promise<void> = promise.catch(() => undefined).then(() => void this.#unawaited.delete(settled));
    this.#unawaited.add(settled);
    return promise;
  }

  async #settleUnawaited(): Promise<void> {
    this.#submitDeferred();
    await Promise.all(this.#unawaited);
  }

  #submitDeferred(): void {
    if (this.#deferred.length === 0) return;
    for (const submit of this.#deferred.splice(0)) submit();
  }

  /** Rejects a request early whose operation the queue would reject. @throws UNAVAILABLE */
  assertCapacity(auth: OperationAuth): void {
    if (!this.#queue.hasCapacityFor(fairnessKeyOf(auth))) throw this.#queue.overloaded();
  }

  /**
   * Resolves when the control state in memory includes every commit before this call, immediately if no other node
   * writes to the store. @throws UNAVAILABLE
   */
  async refresh(): Promise<void> {
    if (this.#parts.store.isMultiWriter) await this.read(NOOP);
  }

  /**
   * Runs a batch if none ran for `idleMs`, so that a node without callers applies the changes of other nodes. Never
   * rejects.
   */
  async pollLog(idleMs: number): Promise<void> {
    const isIdle = performance.now() - this.#lastBatchAt >= idleMs;
    if (isIdle && this.#state === 'ok' && !this.#isRunning) await this.submit(NOOP).catch(() => undefined);
  }

  /** Rejects later operations, which would take the closed store for a failed one; resolves when none waits or runs. */
  close(): Promise<void> {
    this.#submitDeferred();
    this.#isClosed = true;
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
   * WHY: operations that arrive in consecutive iterations of the event loop share a batch and its sync. The batch
   * starts after an iteration without a new operation; a single caller waits for one iteration, a few microseconds.
   */
  #collect(before: number): void {
    const { length } = this.#queue;
    if (length > before && !this.#queue.isBatchFull) setImmediate(() => this.#collect(length));
    else void this.#run();
  }

  async #run(): Promise<void> {
    // WHY more than one: under load one iteration of the event loop brings a thousand requests, far more than one batch
    // takes.
    for (let batches = 0; batches < MAX_BATCHES_PER_TICK; batches++) {
      await this.#runBatch(this.#queue.takeBatch());
      if (this.#queue.isEmpty || !this.#isWorthABatch) break;
    }
    this.#isRunning = false;
    this.#schedule();
    this.#settleIdle();
  }

  #settleIdle(): void {
    if (this.#isRunning || !this.#queue.isEmpty) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve(this.#pendingCommits.last);
  }

  /** Resolves when the batch is written. The next one may begin while the results of this one wait for the disk. */
  async #runBatch(waiting: readonly QueuedOperation[]): Promise<void> {
    try {
      if (this.#state === 'failed') throw unavailable();
      if (this.#state === 'failing') {
        await this.#batches.recover();
        this.#state = 'ok';
      }
      this.#lastBatchAt = performance.now();
      const { results, durable } = await this.#batches.run(waiting.map(({ operation }) => operation));
      // A batch that wrote nothing may have read changes that are not durable yet.
      const delivered = (durable ?? this.#pendingCommits.last).then(
        () => (this.#state === 'failed' ? rejectAll(waiting, outcomeUnknown) : deliver(waiting, results)),
        (error: unknown) => this.#fail(error, waiting),
      );
      await this.#pendingCommits.add(delivered);
    } catch (error) {
      this.#fail(error, waiting);
    }
  }

  #fail(error: unknown, waiting: readonly QueuedOperation[]): void {
    this.#parts.onFailedBatch(error);
    this.measures.batches.add('failed');
    const failure = storeErrorOf(error);
    // The batch may, after any failure but `unavailable`, have reached the disk or the server.
    const isKnown = failure === null || failure.kind === 'unavailable';
    rejectAll(waiting, isKnown ? unavailable : outcomeUnknown);
    if (this.#state === 'failed') return;
    this.#state = 'failing';
    if (failure?.kind === 'fatal') {
      this.#state = 'failed';
      rejectAll(this.#queue.takeAll());
      this.#settleIdle();
      this.#parts.onStorageFailure(failure);
      return;
    }
    this.#tryAgainLater();
  }

  /** Runs a batch later, because without callers nothing would detect that the store works again. */
  #tryAgainLater(): void {
    this.#recovery ??= setTimeout(() => {
      this.#recovery = null;
      if (this.#state === 'failing') this.submit(NOOP).catch(() => undefined);
    }, RECOVERY_INTERVAL_MS).unref();
  }
}

/** Null if the storage fails, which a batch reports. */
async function repliesOf(reads: Promise<DecidedReads>): Promise<DecidedReads['replies'] | null> {
  try {
    const { replies, durable } = await reads;
    await durable;
    return replies;
  } catch {
    return null;
  }
}

// Batches that are written and wait for the disk; their results are delivered after the sync.

/** More would move the backlog from the bounded queue to unsent responses. */
const MAX_BATCHES = 4;

class PendingCommits {
  readonly #batches: Promise<void>[] = [];
  #count = 0;
  #last: Promise<void> = Promise.resolve();
  readonly #onDelivered: () => void;

  /** `onDelivered` is called in the iteration of the event loop after a batch's results were delivered. */
  constructor(onDelivered: () => void) {
    this.#onDelivered = onDelivered;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Resolves when the results of all batches so far are delivered. Never rejects. */
  get last(): Promise<void> {
    return this.#last;
  }

  /** Adds a batch; `delivered` must never reject. Resolves when another batch may be added. */
  async add(delivered: Promise<void>): Promise<void> {
    this.#count += 1;
    this.#last = delivered.then(() => {
      this.#count -= 1;
      // WHY later: callers that just got a result may submit again, and share a batch with the waiting operations.
      setImmediate(this.#onDelivered);
    });
    this.#batches.push(this.#last);
    if (this.#batches.length >= MAX_BATCHES) await this.#batches.shift();
  }
}
