/** Lists: whole, in steps so that none holds up the others, or a page with its `meta`. */

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

interface Source<T> {
  count(): Promise<number>;
  /** Rows behind `after`, the first `offset` of them skipped. */
  read(after: T | null, offset: number, limit: number): Promise<readonly T[]>;
}

/** Rows read at a time: some milliseconds of work. */
export const STEP_ROWS = 500;

export async function readListing<T>(page: Page | null, source: Source<T>): Promise<Listing<T>> {
  const meta = page === null ? null : { ...page, total: await source.count() };
  return { rows: inSteps(page ?? { limit: Number.POSITIVE_INFINITY, offset: 0 }, source), meta };
}

async function* inSteps<T>({ limit, offset }: Page, source: Source<T>): AsyncGenerator<readonly T[]> {
  let after: T | null = null;
  let left = limit;
  while (left > 0) {
    const wanted = Math.min(left, STEP_ROWS);
    const rows: readonly T[] = await source.read(after, after === null ? offset : 0, wanted);
    if (rows.length > 0) yield rows;
    if (rows.length < wanted) return;
    left -= rows.length;
    after = rows.at(-1) ?? null;
    await breathe();
  }
}

/** A list that is in memory already. */
export function sliceListing<T>(all: readonly T[], page: Page | null): Listing<T> {
  const rows = page === null ? all : all.slice(page.offset, page.offset + page.limit);
  async function* once(): AsyncGenerator<readonly T[]> {
    yield rows;
  }
  return { rows: once(), meta: page === null ? null : { ...page, total: all.length } };
}

/** Lets everything else that waits go first. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
