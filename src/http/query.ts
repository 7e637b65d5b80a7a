/** Query values. They come as text; the row's schema says which of them are whole numbers. */
import type { TObject, TSchema } from 'typebox';
import type { PageRequest } from '../vault/paging.ts';

const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;
const WHOLE_NUMBER = /^\d{1,15}$/;

/** The parameters of the schema that are whole numbers. */
export function wholeNumbersOf({ properties }: TObject): string[] {
  const isWhole = (schema: TSchema) => 'type' in schema && schema.type === 'integer';
  return Object.keys(properties).filter((name) => isWhole(properties[name] ?? {}));
}

/** Plain digits become the number; anything else stays text, which the schema then rejects. */
export function readWholeNumbers(query: unknown, names: readonly string[]): void {
  const values = query as Record<string, unknown>;
  for (const name of names) {
    const value = values[name];
    if (typeof value === 'string' && WHOLE_NUMBER.test(value)) values[name] = Number(value);
  }
}

interface PageFields {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}

/** The page, with the defaults of the audit list. */
export function toPage({ limit = DEFAULT_LIMIT, offset = 0 }: PageFields): PageRequest {
  return { limit: Math.min(MAX_LIMIT, limit), offset };
}

/** Null where neither was asked for: the whole list, without `meta`. */
export function toOptionalPage(fields: PageFields): PageRequest | null {
  return fields.limit === undefined && fields.offset === undefined ? null : toPage(fields);
}
