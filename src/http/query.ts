/** Parses query parameters, which arrive as strings, to the integers of the row's schema. */
import type { TObject, TSchema } from 'typebox';
import type { PageRequest } from '../vault/paging.ts';

const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;
const DIGITS = /^\d{1,15}$/;

/** The names of the schema's integer parameters. */
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

/** The requested page, with defaults. */
export function toPage({ limit = DEFAULT_LIMIT, offset = 0 }: PageFields): PageRequest {
  return { limit: Math.min(MAX_LIMIT, limit), offset };
}

/** Null if neither field is given, which requests the whole list without `meta`. */
export function toOptionalPage(fields: PageFields): PageRequest | null {
  return fields.limit === undefined && fields.offset === undefined ? null : toPage(fields);
}
