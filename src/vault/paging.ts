/**
 * Lists: a whole list or log in steps, so that none delays other requests, or a page with its `meta`. A caller's scans
 * run one after the other, and end when the client disconnects.
 */

import type { Context } from '../core/operation.ts';
import type { PageRequest } from '../core/page.ts';
import { fairnessKeyOf } from '../ledger/fair-queue.ts';
import { NEVER_ABORTED, orAborted } from '../ledger/single-flight.ts';
import { readEntries } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import type { CountStep, ListStep } from '../store/statement.ts';
import type { AuditEntry } from './audit/audit-entry.ts';

export interface Listing<T> {
  readonly rows: AsyncIterable<readonly T[]>;
  /** Null if the whole list was requested. */
  readonly meta: (PageRequest & { readonly total: number }) | null;
}

export interface ListReader {
  readonly signal: AbortSignal;
  /**
   * Runs the scan when the caller's previous ones have ended. A scan starts no other one of its caller.
   * @throws the signal's reason if it aborts first; errors of the scan
   */
  inTurn<T>(scan: () => Promise<T>): Promise<T>;
}

/** The turns of a vault's callers, whose scans run one after the other. */
export class ScanTurns {
  /** The end of the newest scan of each key. */
  readonly #newest = new Map<string, Promise<void>>();

  /** WHY two kinds for a caller: a filter of a long log takes minutes, and must not delay the caller's other lists. */
  readerOf({ auth }: Context, signal: AbortSignal, kind: 'list' | 'log' = 'list'): ListReader {
    const key = `${kind} ${fairnessKeyOf(auth)}`;
    return { signal, inTurn: (scan) => this.#run(key, signal, scan) };
  }

  async #run<T>(key: string, signal: AbortSignal, scan: () => Promise<T>): Promise<T> {
    const before = this.#newest.get(key) ?? Promise.resolve();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const newest = before.then(() => ended);
    this.#newest.set(key, newest);
    try {
      await orAborted(before, signal);
      return await scan();
    } finally {
      end();
      void newest.then(() => {
        if (this.#newest.get(key) === newest) this.#newest.delete(key);
      });
    }
  }
}

/** A list of the store, which is read or counted in steps. */
interface SteppedList<T, Place> {
  readonly start: Place;
  list(from: Place, limit: number): Promise<ListStep<T, Place>>;
  /** Decides again which rows the caller may read. @throws the decision's error */
  decideAgain(): Promise<unknown>;
  count(from: Place, atMost: number): Promise<CountStep<Place>>;
}

/** Rows per step: about a millisecond of work. */
export const STEP_ROWS = 500;

/**
 * A page is found by counting: first the skipped rows, which gives its start, then the rest, which gives the total. A
 * list is not a snapshot: each step sees the rows of its time.
 */
export async function readListing<T, Place>(
  page: PageRequest | null,
  source: SteppedList<T, Place>,
  reader: ListReader,
): Promise<Listing<T>> {
  const { start } = source;
  if (page === null) return { rows: inSteps(start, Number.POSITIVE_INFINITY, source, reader), meta: null };
  const { signal } = reader;
  return reader.inTurn(async () => {
    const skipped = await countFrom(start, source, signal, page.offset);
    const rest = await countFrom(skipped.next, source, signal);
    const meta = { ...page, total: skipped.count + rest.count };
    return { rows: inSteps(skipped.next, page.limit, source, reader), meta };
  });
}

/** Counts to the end, or up to `atMost`; `next` is the position at which it stopped. */
export async function countFrom<Place>(
  start: Place | null,
  { count: countStep }: Pick<SteppedList<unknown, Place>, 'count'>,
  signal: AbortSignal,
  atMost: number = Number.MAX_SAFE_INTEGER,
): Promise<CountStep<Place>> {
  let count = 0;
  let next = start;
  while (next !== null && count < atMost) {
    await yieldToEventLoop(signal);
    const step = await countStep(next, atMost - count);
    count += step.count;
    next = step.next;
  }
  return { count, next };
}

/** A list that is still being read is decided again after this time. */
const DECISION_LIFE_MS = 1000;

/** Reads a list in steps, the first of which follows a decision. */
export async function* inSteps<T, Place>(
  start: Place | null,
  limit: number,
  source: Pick<SteppedList<T, Place>, 'list' | 'decideAgain'>,
  reader: ListReader,
): AsyncGenerator<readonly T[]> {
  let place = start;
  let left = limit;
  let decidedAt = performance.now();
  const findRows = async (): Promise<readonly T[]> => {
    let found: readonly T[] = [];
    while (place !== null && found.length === 0) {
      await yieldToEventLoop(reader.signal);
      if (performance.now() - decidedAt >= DECISION_LIFE_MS) {
        await source.decideAgain();
        decidedAt = performance.now();
      }
      const step = await source.list(place, Math.min(left, STEP_ROWS));
      found = step.rows;
      place = step.next;
    }
    return found;
  };
  while (place !== null && left > 0) {
    // WHY a turn for each batch: a client that reads slowly does not delay the caller's other lists.
    const rows = await reader.inTurn(findRows);
    if (rows.length > 0) yield rows;
    left -= rows.length;
  }
}

/** A list of rows in memory. */
export function sliceListing<T>(all: readonly T[], page: PageRequest | null): Listing<T> {
  const rows = page === null ? all : all.slice(page.offset, page.offset + page.limit);
  async function* inBatches(): AsyncGenerator<readonly T[]> {
    let first = 0;
    do {
      await yieldToEventLoop();
      yield rows.slice(first, first + STEP_ROWS);
      first += STEP_ROWS;
    } while (first < rows.length);
  }
  return { rows: inBatches(), meta: page === null ? null : { ...page, total: all.length } };
}

interface Waiter {
  readonly signal: AbortSignal;
  readonly resume: () => void;
  readonly fail: (reason: unknown) => void;
}

const waiting: Waiter[] = [];
/**
 * Iterations of the event loop between two steps. An iteration takes microseconds while the server is idle; under load
 * it runs a batch or more, so that the steps take a small part of the time.
 */
const TICKS_BETWEEN_STEPS = 4;

/**
 * Yields to the event loop; long work awaits it before each step. Only one waiter resumes at a time, so that long lists
 * slow each other down and nothing else. @throws the signal's reason: the work of a client that has disconnected ends
 */
export function yieldToEventLoop(signal: AbortSignal = NEVER_ABORTED): Promise<void> {
  return new Promise((resume, fail) => {
    waiting.push({ signal, resume, fail });
    if (waiting.length === 1) setImmediate(resumeNext, TICKS_BETWEEN_STEPS);
  });
}

function resumeNext(ticks: number): void {
  if (ticks > 1) {
    setImmediate(resumeNext, ticks - 1);
    return;
  }
  let next = waiting.shift();
  for (; next?.signal.aborted; next = waiting.shift()) next.fail(next.signal.reason);
  next?.resume();
  if (waiting.length > 0) setImmediate(resumeNext, TICKS_BETWEEN_STEPS);
}

/** Less than a batch takes. */
const SLICE_MS = 2;

/** Yields to the event loop when a slice of work has lasted long enough. */
export class Slice {
  #endsAt = performance.now() + SLICE_MS;

  get isOver(): boolean {
    return performance.now() >= this.#endsAt;
  }

  async pause(signal?: AbortSignal): Promise<void> {
    if (!this.isOver) return;
    await yieldToEventLoop(signal);
    this.#endsAt = performance.now() + SLICE_MS;
  }
}

/** Yields the entries from the oldest up to `lastSeq`, inclusive. */
export async function* scanEntries(
  store: Store,
  lastSeq: number,
  stepRows: number,
): AsyncGenerator<readonly AuditEntry[]> {
  let next = 1;
  while (next <= lastSeq) {
    const rows = await store.run(readEntries(next, lastSeq, stepRows));
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    next = last.seq + 1;
    await yieldToEventLoop();
  }
}
