/** Lists on the wire: JSON written row by row, so that a long list never stands in memory as a whole. */
import { Readable } from 'node:stream';
import type { Listing } from '../vault/paging.ts';
import type { Reply } from './route.ts';

/** `{"data":[…]}`, with `meta` where a page was asked for. The first rows are read before anything is sent. */
export async function streamList<T>(listing: Listing<T>, toWire: (row: T) => unknown): Promise<Reply> {
  const batches = listing.rows[Symbol.asyncIterator]();
  const first = await batches.next();
  async function* text(): AsyncGenerator<string> {
    yield '{"data":[';
    let batch = first;
    let separator = '';
    while (!batch.done) {
      const rows = batch.value.map((row) => JSON.stringify(toWire(row))).join(',');
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

/** One JSON object a line. */
export function toNdjson(batches: AsyncIterable<readonly unknown[]>): Readable {
  async function* text(): AsyncGenerator<string> {
    for await (const rows of batches) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  }
  return Readable.from(text());
}
