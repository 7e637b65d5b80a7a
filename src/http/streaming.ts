/** Streams lists as JSON row by row, so that a long list is never held in memory as a whole. */
import { Readable } from 'node:stream';
import type { Listing } from '../vault/paging.ts';
import type { Reply } from './route.ts';

/**
 * Replies `{"data":[…]}`, with `meta` if a page was requested. Reads the first rows before anything is sent, so that
 * their error is a response.
 */
export async function streamList<T>(listing: Listing<T>, toResponse: (row: T) => unknown): Promise<Reply> {
  const batches = listing.rows[Symbol.asyncIterator]();
  const first = await batches.next();
  async function* text(): AsyncGenerator<string> {
    yield '{"data":[';
    let batch = first;
    let separator = '';
    while (!batch.done) {
      const rows = batch.value.map((row) => JSON.stringify(toResponse(row))).join(',');
      if (rows !== '') {
        yield separator + rows;
        separator = ',';
      }
      batch = await batches.next();
    }
    yield listing.meta === null ? ']}' : `],"meta":${JSON.stringify(listing.meta)}}`;
  }
  return { stream: Readable.from(text()), type: 'application/json; charset=utf-8' };
}

/** One JSON object per line. */
export function toNdjson(batches: AsyncIterable<readonly unknown[]>): Readable {
  async function* text(): AsyncGenerator<string> {
    for await (const rows of batches) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  }
  return Readable.from(text());
}
