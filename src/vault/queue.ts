/** What waits for its turn, bounded: an overfull queue refuses at once. First come, first served. */
import { Fault } from '../core/fault.ts';
import type { Operation } from '../core/operation.ts';
import type { Answer } from './turn.ts';

/** An operation that waits, with the way back to its caller. */
export interface Waiting {
  readonly operation: Operation<unknown>;
  readonly settle: (answer: Answer) => void;
}

const MAX_WAITING = 4096;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
// SOURCE: design, "What was measured": turns of 16 to 64 operations were best. With 64 callers two of 32 take turns: one is
// decided while the disk works for the other.
const MAX_TURN = 64;
const MAX_TURN_BYTES = 8 * 1024 * 1024;

export class Queue {
  #waiting: Waiting[] = [];
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Whether more would have to wait for another turn. */
  get isTurnFull(): boolean {
    return this.#waiting.length >= MAX_TURN;
  }

  /** @throws UNAVAILABLE when it is full. */
  add(waiting: Waiting): void {
    const { sizeBytes } = waiting.operation;
    if (this.#waiting.length >= MAX_WAITING || this.#bytes + sizeBytes > MAX_WAITING_BYTES) {
      throw new Fault('UNAVAILABLE', 'The service has more to do than it can. Try again in a second.', 1);
    }
    this.#waiting.push(waiting);
    this.#bytes += sizeBytes;
  }

  /** Takes the next turn's operations, in order. One that counts what is active comes first in its turn. */
  takeTurn(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { operation } of this.#waiting) {
      const mustBeFirst = operation.keys.activeLeases !== undefined;
      const isFull = count >= MAX_TURN || bytes + operation.sizeBytes > MAX_TURN_BYTES;
      if (count > 0 && (mustBeFirst || isFull)) break;
      bytes += operation.sizeBytes;
      count += 1;
    }
    const turn = this.#waiting.slice(0, count);
    this.#waiting = this.#waiting.slice(count);
    this.#bytes -= bytes;
    return turn;
  }

  takeAll(): Waiting[] {
    const all = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    return all;
  }
}

export function answer(waiting: readonly Waiting[], answers: readonly Answer[]): void {
  for (const [index, { settle }] of waiting.entries()) {
    settle(answers[index] ?? { kind: 'refusal', error: new Error('an operation was not answered') });
  }
}

/** Nothing is lent to any of them. */
export function refuse(waiting: readonly Waiting[]): void {
  for (const { settle } of waiting) settle({ kind: 'refusal', error: unavailable() });
}

export function unavailable(): Fault {
  return new Fault('UNAVAILABLE', 'The service could not record this, and lent nothing. Try again in a second.', 1);
}
