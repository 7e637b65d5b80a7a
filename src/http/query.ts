/** Query values, each by its rule. All come as text. */
import { invalid } from '../core/fault.ts';
import { parseTtl, type TtlSeconds } from '../core/policy.ts';
import type { Page } from '../vault/listing.ts';

const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;
const WHOLE_NUMBER = /^\d{1,15}$/;

function parseWhole(text: string, field: string, least: number): number {
  const value = WHOLE_NUMBER.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value) || value < least) throw invalid(field, `must be a whole number, ${least} or more`);
  return value;
}

interface PageFields {
  readonly limit?: string | undefined;
  readonly offset?: string | undefined;
}

/** The page, with the defaults of the audit list. @throws INVALID_REQUEST */
export function parsePage({ limit, offset }: PageFields): Page {
  return {
    limit: Math.min(MAX_LIMIT, limit === undefined ? DEFAULT_LIMIT : parseWhole(limit, 'limit', 1)),
    offset: offset === undefined ? 0 : parseWhole(offset, 'offset', 0),
  };
}

/** Null where neither was asked for: the whole list, without `meta`. @throws INVALID_REQUEST */
export function parseOptionalPage(fields: PageFields): Page | null {
  return fields.limit === undefined && fields.offset === undefined ? null : parsePage(fields);
}

/** @throws INVALID_REQUEST */
export function parseVersion(text: string | undefined): number | null {
  return text === undefined ? null : parseWhole(text, 'version', 1);
}

/** @throws INVALID_REQUEST */
export function parseTtlQuery(text: string | undefined): TtlSeconds | null {
  return text === undefined ? null : parseTtl(WHOLE_NUMBER.test(text) ? Number(text) : Number.NaN, 'ttl');
}

/** @throws INVALID_REQUEST naming the field and the words. */
export function parseWord<T extends string>(text: string, words: readonly T[], field: string): T {
  const word = words.find((known) => known === text);
  if (word === undefined) throw invalid(field, `must be one of ${words.join(', ')}`);
  return word;
}
