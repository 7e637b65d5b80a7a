/**
 * What waits for its turn, bounded. Everyone who asks has a line of their own, and turns are filled from the lines one
 * operation each, so that a flood of one holds up nobody else; who is alone gets whole turns. Where it is full, the newest
 * operation of the longest line is refused.
 * SOURCE: fair queueing with longest-queue drop: Demers, Keshav, Shenker 1989; Suter et al. 1999.
 */
import { ApiError } from '../core/errors.ts';
import type { Operation } from '../core/operation.ts';
import type { OperationResult } from './decide-batch.ts';

/** An operation that waits, with the way back to its caller. */
export interface QueuedOperation {
  readonly operation: Operation<unknown>;
  readonly settle: (answer: OperationResult) => void;
}

/** Some 60 ms of work: who comes later hears at once that it is too much. */
const MAX_WAITING = 1024;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Of all strangers together: addresses are cheap, and each has a line. */
const MAX_STRANGERS = 256;
// SOURCE: design, "What was measured": turns of 16 to 64 operations were best …
const MAX_TURN = 64;
/** … but where several nodes share a store a turn costs round trips, whatever is in it. SOURCE: docs/performance.md. */
const MAX_SHARED_TURN = 256;
const MAX_TURN_BYTES = 8 * 1024 * 1024;

/** What one origin has waiting, oldest first. */
interface CallerQueue {
  readonly origin: string;
  readonly waiting: QueuedOperation[];
  bytes: number;
}

export class FairQueue {
  readonly #maxTurn: number;
  readonly #lines = new Map<string, CallerQueue>();
  /** The lines in the order in which they come next. */
  #round: CallerQueue[] = [];
  #length = 0;
  #bytes = 0;
  #strangers = 0;

  /** `isShared`: of a store that several nodes share. */
  constructor(isShared = false) {
    this.#maxTurn = isShared ? MAX_SHARED_TURN : MAX_TURN;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  get length(): number {
    return this.#length;
  }

  /** Whether more would have to wait for another turn. */
  get isBatchFull(): boolean {
    return this.#length >= this.#maxTurn;
  }

  /** Whether something small of theirs would come in. */
  hasCapacityFor(origin: string): boolean {
    if (this.#length < MAX_WAITING) return true;
    return this.#longerThan((this.#lines.get(origin)?.waiting.length ?? 0) + 1, 'length') !== null;
  }

  /** Refuses the newest of the longest line where there is no room. @throws UNAVAILABLE where that is the caller's own. */
  add(waiting: QueuedOperation): void {
    const { fairnessKey, sizeBytes, isUnauthenticated } = waiting.operation;
    if (isUnauthenticated === true && this.#strangers >= MAX_STRANGERS) throw OVERLOADED;
    const own = this.#lines.get(fairnessKey) ?? { origin: fairnessKey, waiting: [], bytes: 0 };
    for (;;) {
      const lacks = this.#length >= MAX_WAITING ? 'length' : 'bytes';
      if (lacks === 'bytes' && this.#bytes + sizeBytes <= MAX_WAITING_BYTES) break;
      const longer = this.#longerThan(lacks === 'length' ? own.waiting.length + 1 : own.bytes + sizeBytes, lacks);
      if (longer === null) throw OVERLOADED;
      this.#dropNewest(longer);
    }
    if (own.waiting.length === 0) {
      this.#lines.set(fairnessKey, own);
      this.#round.push(own);
    }
    own.waiting.push(waiting);
    own.bytes += sizeBytes;
    this.#length += 1;
    this.#bytes += sizeBytes;
    if (isUnauthenticated === true) this.#strangers += 1;
  }

  /** Takes the next turn's operations, one of each line in a round. */
  takeBatch(): QueuedOperation[] {
    const turn: QueuedOperation[] = [];
    let bytes = 0;
    for (let line = this.#round[0]; line !== undefined; line = this.#round[0]) {
      const next = line.waiting[0];
      if (next === undefined) throw new Error('a line was kept that has nothing waiting');
      const { sizeBytes } = next.operation;
      const isFull = turn.length >= this.#maxTurn || bytes + sizeBytes > MAX_TURN_BYTES;
      if (turn.length > 0 && isFull) break;
      turn.push(next);
      bytes += sizeBytes;
      line.waiting.shift();
      this.#round.shift();
      this.#taken(line, next);
      if (line.waiting.length > 0) this.#round.push(line);
    }
    return turn;
  }

  takeAll(): QueuedOperation[] {
    const all = this.#round.flatMap(({ waiting }) => waiting);
    this.#lines.clear();
    this.#round = [];
    this.#length = 0;
    this.#bytes = 0;
    this.#strangers = 0;
    return all;
  }

  /** The line that takes the most of what there is too little of, where that is more than the caller would. */
  #longerThan(would: number, measure: Measure): CallerQueue | null {
    let longest: CallerQueue | null = null;
    for (const line of this.#round) {
      if (takenBy(line, measure) > (longest === null ? would : takenBy(longest, measure))) longest = line;
    }
    return longest;
  }

  #dropNewest(line: CallerQueue): void {
    const dropped = line.waiting.pop();
    if (dropped === undefined) throw new Error('a line was kept that has nothing waiting');
    this.#taken(line, dropped);
    if (line.waiting.length === 0) this.#round = this.#round.filter((other) => other !== line);
    dropped.settle({ kind: 'refusal', error: OVERLOADED });
  }

  #taken(line: CallerQueue, { operation }: QueuedOperation): void {
    line.bytes -= operation.sizeBytes;
    this.#length -= 1;
    this.#bytes -= operation.sizeBytes;
    if (operation.isUnauthenticated === true) this.#strangers -= 1;
    if (line.waiting.length === 0) this.#lines.delete(line.origin);
  }
}

type Measure = 'length' | 'bytes';

const takenBy = ({ waiting, bytes }: CallerQueue, measure: Measure): number =>
  measure === 'length' ? waiting.length : bytes;

export function answer(waiting: readonly QueuedOperation[], answers: readonly OperationResult[]): void {
  for (const [index, { settle }] of waiting.entries()) {
    settle(answers[index] ?? { kind: 'refusal', error: new Error('an operation was not answered') });
  }
}

/** Nothing is lent to any of them. */
export function refuse(waiting: readonly QueuedOperation[], toFault: () => ApiError = unavailable): void {
  for (const { settle } of waiting) settle({ kind: 'refusal', error: toFault() });
}

export function unavailable(): ApiError {
  return new ApiError('UNAVAILABLE', 'The service could not record this, and lent nothing. Try again in a second.', 1);
}

/** For a commit of which nobody saw what came of it. */
export function outcomeUnknown(): ApiError {
  const message =
    'It is not known whether this was recorded; nothing was lent. A POST with an Idempotency-Key can be sent again safely.';
  return new ApiError('UNAVAILABLE', message, 1);
}

/** One for all, because there are many when there is no time: what an error costs is its stack. */
export const OVERLOADED = new ApiError(
  'UNAVAILABLE',
  'The service has more to do than it can. Try again in a second.',
  1,
);
