/** Lists: whole, in steps so that none holds up the others, or a page with its `meta`. */
import type { Counted, Listed } from '../store/queries.ts';

/** A page that was asked for. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}

export interface Listing<T> {
  /** Batches of rows, in order. */
  readonly rows: AsyncIterable<readonly T[]>;
  /** Null where the whole list was asked for. */
  readonly meta: (Page & { readonly total: number }) | null;
}

/** A list of the store, in its steps. */
interface Source<T, Place> {
  readonly start: Place;
  list(from: Place, limit: number): Promise<Listed<T, Place>>;
  count(from: Place, atMost: number): Promise<Counted<Place>>;
}

/** Rows read at a time: about a millisecond of work. */
export const STEP_ROWS = 500;

/**
 * A page is found by counting: first through what it skips, which tells where it begins, then through the rest, for the total.
 * No snapshot: each step sees what is there then.
 */
export async function readListing<T, Place>(page: Page | null, source: Source<T, Place>): Promise<Listing<T>> {
  const { start } = source;
  if (page === null) return { rows: inSteps(start, Number.POSITIVE_INFINITY, source), meta: null };
  const skipped = await countFrom(start, source, page.offset);
  const rest = await countFrom(skipped.reached, source);
  const meta = { ...page, total: skipped.count + rest.count };
  return { rows: inSteps(skipped.reached, page.limit, source), meta };
}

/** Counts to the end, or to `atMost`; `reached` is where it stopped. */
export async function countFrom<Place>(
  start: Place | null,
  { count: countStep }: Pick<Source<unknown, Place>, 'count'>,
  atMost: number = Number.MAX_SAFE_INTEGER,
): Promise<Counted<Place>> {
  let count = 0;
  let reached = start;
  while (reached !== null && count < atMost) {
    await breathe();
    const step = await countStep(reached, atMost - count);
    count += step.count;
    reached = step.reached;
  }
  return { count, reached };
}

async function* inSteps<T, Place>(
  start: Place | null,
  limit: number,
  source: Source<T, Place>,
): AsyncGenerator<readonly T[]> {
  let place = start;
  let left = limit;
  while (place !== null && left > 0) {
    await breathe();
    const { rows, reached } = await source.list(place, Math.min(left, STEP_ROWS));
    if (rows.length > 0) yield rows;
    left -= rows.length;
    place = reached;
  }
}

/** A list that is in memory already. */
export function sliceListing<T>(all: readonly T[], page: Page | null): Listing<T> {
  const rows = page === null ? all : all.slice(page.offset, page.offset + page.limit);
  async function* inBatches(): AsyncGenerator<readonly T[]> {
    let first = 0;
    do {
      await breathe();
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
const ROUNDS_APART = 4;

/**
 * To be awaited before each step of a long work. Of all that wait one goes on at a time: a hundred long lists at once slow each
 * other down, and nobody else.
 */
export function breathe(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(letOneGo, ROUNDS_APART);
  });
}

function letOneGo(rounds: number): void {
  if (rounds > 1) {
    setImmediate(letOneGo, rounds - 1);
    return;
  }
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(letOneGo, ROUNDS_APART);
}
