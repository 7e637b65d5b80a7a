/** Pages of lists: their parameters of the query, and their rows as a stream of JSON. */
import { Readable } from 'node:stream';
import type { TObject, TSchema } from 'typebox';
import type { Listing, PageRequest } from '../vault/paging.ts';
import type { Reply } from './route.ts';

const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;
const DIGITS = /^\d{1,15}$/;

export function integerParameters({ properties }: TObject): string[] {
  const isInteger = (schema: TSchema) => 'type' in schema && schema.type === 'integer';
  return Object.keys(properties).filter((name) => isInteger(properties[name] ?? {}));
}

/** Converts strings of digits to numbers. Other strings stay, and the schema rejects them. */
export function parseIntegers(query: unknown, names: readonly string[]): void {
  const values = query as Record<string, unknown>;
  for (const name of names) {
    const value = values[name];
    if (typeof value === 'string' && DIGITS.test(value)) values[name] = Number(value);
  }
}

interface PageFields {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}

export function toPage({ limit = DEFAULT_LIMIT, offset = 0 }: PageFields): PageRequest {
  return { limit: Math.min(MAX_LIMIT, limit), offset };
}

/** Null if neither field is given, which requests the whole list without `meta`. */
export function toOptionalPage(fields: PageFields): PageRequest | null {
  return fields.limit === undefined && fields.offset === undefined ? null : toPage(fields);
}

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
