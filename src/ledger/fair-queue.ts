/**
 * Operations that wait for a batch, bounded. Each caller has a queue, and a batch takes one operation of each queue in
 * turn, so that a flood of one caller delays no other; a caller that is alone fills whole batches. When all is full,
 * the newest operation of the longest queue is rejected.
 * SOURCE: fair queueing with longest-queue drop: Demers, Keshav, Shenker 1989; Suter et al. 1999.
 */
import type { OperationAuth } from '../core/identity.ts';
import { ADMIN, SERVICE } from '../core/names.ts';
import type { Operation } from '../core/operation.ts';
import { ApiError } from '../engine/errors.ts';
import type { OperationResult } from './decide-batch.ts';

export interface QueuedOperation {
  readonly operation: Operation<unknown>;
  /** Approximate memory that the operation holds, in bytes. */
  readonly sizeBytes: number;
  readonly settle: (result: OperationResult) => void;
}

/**
 * The key of the queue of an auth context: one for each agent or operator, for each unauthenticated address, and for
 * the administrator.
 */
export function fairnessKeyOf(auth: OperationAuth): string {
  switch (auth.kind) {
    case 'admin':
      return ADMIN;
    case 'session':
    case 'operator':
    case 'lease':
      return auth.agentName;
    case 'unauthenticated':
      return `address ${auth.remoteAddr}`;
    case 'service':
      return SERVICE;
  }
}

const isUnauthenticated = ({ operation }: QueuedOperation): boolean => operation.auth.kind === 'unauthenticated';

/** About 60 ms of work; further operations are rejected immediately. */
const MAX_WAITING = 1024;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** The limit of all unauthenticated callers together, because each IP address has a queue. */
const MAX_UNAUTHENTICATED = 256;
// WHY: in measurements, batches of 16 to 64 operations were best.
const MAX_BATCH = 64;
/**
 * Larger where several nodes share a store: a batch costs round trips, whatever its size.
 * SOURCE: docs/performance.md.
 */
const MAX_MULTI_WRITER_BATCH = 256;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;

/** The operations of one fairness key, oldest first. */
interface CallerQueue {
  readonly fairnessKey: string;
  readonly waiting: QueuedOperation[];
  bytes: number;
}

export class FairQueue {
  readonly #maxBatch: number;
  readonly #queues = new Map<string, CallerQueue>();
  /** The queues in the order in which they are served. */
  #round: CallerQueue[] = [];
  #length = 0;
  #bytes = 0;
  #unauthenticated = 0;
  #rejections = 0;

  /** `isMultiWriter`: several nodes share the store. */
  constructor(isMultiWriter = false) {
    this.#maxBatch = isMultiWriter ? MAX_MULTI_WRITER_BATCH : MAX_BATCH;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  get length(): number {
    return this.#length;
  }

  get rejections(): number {
    return this.#rejections;
  }

  overloaded(): ApiError {
    this.#rejections += 1;
    return OVERLOADED;
  }

  /** Whether one more operation would have to wait for another batch. */
  get isBatchFull(): boolean {
    return this.#length >= this.#maxBatch;
  }

  /** Whether a small operation of the caller would be accepted. */
  hasCapacityFor(fairnessKey: string): boolean {
    if (this.#length < MAX_WAITING) return true;
    return this.#longerThan((this.#queues.get(fairnessKey)?.waiting.length ?? 0) + 1, 'length') !== null;
  }

  /**
   * Rejects the newest operation of the longest queue if the limits are reached.
   * @throws UNAVAILABLE if that queue is the caller's
   */
  add(waiting: QueuedOperation): void {
    const { sizeBytes } = waiting;
    const fairnessKey = fairnessKeyOf(waiting.operation.auth);
    if (isUnauthenticated(waiting) && this.#unauthenticated >= MAX_UNAUTHENTICATED) throw this.overloaded();
    const own = this.#queues.get(fairnessKey) ?? { fairnessKey, waiting: [], bytes: 0 };
    for (;;) {
      const lacks = this.#length >= MAX_WAITING ? 'length' : 'bytes';
      if (lacks === 'bytes' && this.#bytes + sizeBytes <= MAX_WAITING_BYTES) break;
      const longer = this.#longerThan(lacks === 'length' ? own.waiting.length + 1 : own.bytes + sizeBytes, lacks);
      if (longer === null) throw this.overloaded();
      this.#dropNewest(longer);
    }
    if (own.waiting.length === 0) {
      this.#queues.set(fairnessKey, own);
      this.#round.push(own);
    }
    own.waiting.push(waiting);
    own.bytes += sizeBytes;
    this.#length += 1;
    this.#bytes += sizeBytes;
    if (isUnauthenticated(waiting)) this.#unauthenticated += 1;
  }

  /** Removes and returns the operations of the next batch, one of each queue in turn. */
  takeBatch(): QueuedOperation[] {
    const batch: QueuedOperation[] = [];
    let bytes = 0;
    for (let queue = this.#round[0]; queue !== undefined; queue = this.#round[0]) {
      const next = queue.waiting[0];
      if (next === undefined) throw new Error('an empty queue was not removed');
      const { sizeBytes } = next;
      const isFull = batch.length >= this.#maxBatch || bytes + sizeBytes > MAX_BATCH_BYTES;
      if (batch.length > 0 && isFull) break;
      batch.push(next);
      bytes += sizeBytes;
      queue.waiting.shift();
      this.#round.shift();
      this.#taken(queue, next);
      if (queue.waiting.length > 0) this.#round.push(queue);
    }
    return batch;
  }

  takeAll(): QueuedOperation[] {
    const all = this.#round.flatMap(({ waiting }) => waiting);
    this.#queues.clear();
    this.#round = [];
    this.#length = 0;
    this.#bytes = 0;
    this.#unauthenticated = 0;
    return all;
  }

  /** The queue that uses the most of the measure, if that is more than the caller would use. */
  #longerThan(would: number, measure: Measure): CallerQueue | null {
    let longest: CallerQueue | null = null;
    for (const queue of this.#round) {
      if (takenBy(queue, measure) > (longest === null ? would : takenBy(longest, measure))) longest = queue;
    }
    return longest;
  }

  #dropNewest(queue: CallerQueue): void {
    const dropped = queue.waiting.pop();
    if (dropped === undefined) throw new Error('an empty queue was not removed');
    this.#taken(queue, dropped);
    if (queue.waiting.length === 0) this.#round = this.#round.filter((other) => other !== queue);
    dropped.settle({ kind: 'error', error: this.overloaded() });
  }

  #taken(queue: CallerQueue, taken: QueuedOperation): void {
    queue.bytes -= taken.sizeBytes;
    this.#length -= 1;
    this.#bytes -= taken.sizeBytes;
    if (isUnauthenticated(taken)) this.#unauthenticated -= 1;
    if (queue.waiting.length === 0) this.#queues.delete(queue.fairnessKey);
  }
}

type Measure = 'length' | 'bytes';

const takenBy = ({ waiting, bytes }: CallerQueue, measure: Measure): number =>
  measure === 'length' ? waiting.length : bytes;

export function deliver(waiting: readonly QueuedOperation[], results: readonly OperationResult[]): void {
  for (const [index, { settle }] of waiting.entries()) {
    settle(results[index] ?? { kind: 'error', error: new Error('an operation has no result') });
  }
}

export function rejectAll(waiting: readonly QueuedOperation[], toError: () => ApiError = unavailable): void {
  for (const { settle } of waiting) settle({ kind: 'error', error: toError() });
}

export function unavailable(): ApiError {
  const message = 'The server could not record the request, and nothing was done. Try again in a second.';
  return new ApiError('UNAVAILABLE', message, 1);
}

export function outcomeUnknown(): ApiError {
  const message =
    'It is unknown whether the request was recorded; no value was returned. A POST with an Idempotency-Key can be repeated safely.';
  return new ApiError('UNAVAILABLE', message, 1);
}

/** Shared: capturing a stack trace per rejection is too expensive under overload. */
export const OVERLOADED = new ApiError('UNAVAILABLE', 'The server is overloaded. Try again in a second.', 1);
