/** Lists: whole, in steps so that none holds up the others, or a page with its `meta`. */
import type { CountStep, ListStep } from '../store/queries.ts';

/** A page that was asked for. */
export interface PageRequest {
  readonly limit: number;
  readonly offset: number;
}

export interface Listing<T> {
  /** Batches of rows, in order. */
  readonly rows: AsyncIterable<readonly T[]>;
  /** Null where the whole list was asked for. */
  readonly meta: (PageRequest & { readonly total: number }) | null;
}

/** A list of the store, in its steps. */
interface SteppedList<T, Place> {
  readonly start: Place;
  list(from: Place, limit: number): Promise<ListStep<T, Place>>;
  count(from: Place, atMost: number): Promise<CountStep<Place>>;
}

/** Rows read at a time: about a millisecond of work. */
export const STEP_ROWS = 500;

/**
 * A page is found by counting: first through what it skips, which tells where it begins, then through the rest, for the total.
 * No snapshot: each step sees what is there then.
 */
export async function readListing<T, Place>(
  page: PageRequest | null,
  source: SteppedList<T, Place>,
): Promise<Listing<T>> {
  const { start } = source;
  if (page === null) return { rows: inSteps(start, Number.POSITIVE_INFINITY, source), meta: null };
  const skipped = await countFrom(start, source, page.offset);
  const rest = await countFrom(skipped.next, source);
  const meta = { ...page, total: skipped.count + rest.count };
  return { rows: inSteps(skipped.next, page.limit, source), meta };
}

/** Counts to the end, or to `atMost`; `next` is where it stopped. */
export async function countFrom<Place>(
  start: Place | null,
  { count: countStep }: Pick<SteppedList<unknown, Place>, 'count'>,
  atMost: number = Number.MAX_SAFE_INTEGER,
): Promise<CountStep<Place>> {
  let count = 0;
  let next = start;
  while (next !== null && count < atMost) {
    await yieldToEventLoop();
    const step = await countStep(next, atMost - count);
    count += step.count;
    next = step.next;
  }
  return { count, next };
}

async function* inSteps<T, Place>(
  start: Place | null,
  limit: number,
  source: SteppedList<T, Place>,
): AsyncGenerator<readonly T[]> {
  let place = start;
  let left = limit;
  while (place !== null && left > 0) {
    await yieldToEventLoop();
    const { rows, next } = await source.list(place, Math.min(left, STEP_ROWS));
    if (rows.length > 0) yield rows;
    left -= rows.length;
    place = next;
  }
}

/** A list that is in memory already. */
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

const waiting: (() => void)[] = [];
/**
 * Rounds of the loop from one step to the next. While nobody else works a round takes microseconds; under load it is a turn or
 * more, and the steps take a small part of the time.
 */
const TICKS_BETWEEN_STEPS = 4;

/**
 * To be awaited before each step of a long work. Of all that wait one goes on at a time: a hundred long lists at once slow each
 * other down, and nobody else.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(resumeNext, TICKS_BETWEEN_STEPS);
  });
}

function resumeNext(rounds: number): void {
  if (rounds > 1) {
    setImmediate(resumeNext, rounds - 1);
    return;
  }
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(resumeNext, TICKS_BETWEEN_STEPS);
}
