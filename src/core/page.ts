/** A page of a list: its parameters in a query, and how they count. SOURCE: docs/api.md, "Lists". */
import { optional, type ValueOf } from '../engine/field.ts';
import { integer, MAX_EXACT } from '../engine/kinds.ts';
import { shape } from '../engine/resource.ts';

const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;

export interface PageRequest {
  readonly limit: number;
  readonly offset: number;
}

/** The parameters of a page, for the queries of lists. */
export const PAGE = {
  limit: optional(
    integer(
      { min: 1, max: MAX_EXACT },
      { description: 'The maximum number of entries; values over 1000 count as 1000.' },
    ),
  ),
  offset: optional(integer({ min: 0, max: MAX_EXACT }, { description: 'The number of entries to skip.' })),
};
export const PageQuery = shape('PageQuery', PAGE);
type GivenPage = ValueOf<typeof PAGE>;

export function toPage({ limit, offset }: GivenPage): PageRequest {
  return { limit: Math.min(MAX_LIMIT, limit ?? DEFAULT_LIMIT), offset: offset ?? 0 };
}

/** Null if neither parameter is given, which requests the whole list without `meta`. */
export function toOptionalPage(given: GivenPage): PageRequest | null {
  return given.limit === null && given.offset === null ? null : toPage(given);
}
