/** The rows of lists as a stream of JSON. */
import { Readable } from 'node:stream';
import type { Listing } from '../vault/paging.ts';
import type { Reply } from './route.ts';

/**
 * Replies `{"data":[…]}`, with `meta` if a page was requested. Reads the first rows before anything is sent, so that
 * their error is a response.
 */
export async function streamList<T>(listing: Listing<T>, toResponse: (row: T) => unknown): Promise<Reply> {
  const batches = listing.rows[Symbol.asyncIterator]();
  // WHY an array: a variable would keep the rows of the first batch until the list ends.
  const ahead = [await batches.next()];
  async function* text(): AsyncGenerator<string> {
    yield '{"data":[';
    let separator = '';
    for (;;) {
      const batch = ahead.shift() ?? (await batches.next());
      if (batch.done === true) break;
      if (batch.value.length === 0) continue;
      yield separator + batch.value.map((row) => JSON.stringify(toResponse(row))).join(',');
      separator = ',';
    }
    yield listing.meta === null ? ']}' : `],"meta":${JSON.stringify(listing.meta)}}`;
  }
  return { stream: Readable.from(text()), type: 'application/json; charset=utf-8' };
}

export function toNdjson(batches: AsyncIterable<readonly unknown[]>): Readable {
  async function* text(): AsyncGenerator<string> {
    for await (const rows of batches) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  }
  return Readable.from(text());
}
