/**
 * SQL as data. What all stores do in the same way is written once as a procedure, which yields statements and receives
 * their rows: SQLite runs it synchronously, PostgreSQL over a connection.
 */

export type Value = string | number | Uint8Array | null;
export type Row = Readonly<Record<string, unknown>>;

/** The text around the values, which are always bound: one part more than values. */
export interface Statement {
  readonly parts: readonly string[];
  readonly values: readonly Value[];
}

export type Procedure<Result> = Generator<Statement, Result, readonly Row[]>;
export type ResultOf<Read extends (...values: never[]) => Procedure<unknown>> =
  ReturnType<Read> extends Procedure<infer Result> ? Result : never;

/** A statement or a part of one. A `Statement` among the arguments becomes part of its text. */
export function sql(texts: TemplateStringsArray, ...values: readonly (Value | Statement)[]): Statement {
  const parts = [texts[0] ?? ''];
  const bound: Value[] = [];
  const append = (text = ''): void => {
    parts.push((parts.pop() ?? '') + text);
  };
  for (const [index, value] of values.entries()) {
    if (isStatement(value)) {
      const [first, ...others] = value.parts;
      append(first);
      parts.push(...others);
      bound.push(...value.values);
      append(texts[index + 1]);
    } else {
      bound.push(value);
      parts.push(texts[index + 1] ?? '');
    }
  }
  return { parts, values: bound };
}

const isStatement = (value: Value | Statement): value is Statement =>
  typeof value === 'object' && value !== null && 'parts' in value;

/** Text without values. Never from input. */
export const raw = (text: string): Statement => ({ parts: [text], values: [] });

export function and(first: Statement, ...others: readonly Statement[]): Statement {
  return others.reduce((all, condition) => sql`${all} AND ${condition}`, first);
}

/** The rows of a step, and the cursor of the next one: null at the end of the list. */
export interface ListStep<Row, Cursor> {
  readonly rows: readonly Row[];
  readonly next: Cursor | null;
}

export interface CountStep<Cursor> {
  readonly count: number;
  readonly next: Cursor | null;
}

/** Less than a batch takes. */
const STEP_MS = 1;

/**
 * Visits at least one chunk, and more until there is enough or the time is up. Returns the cursor of the next step;
 * null at the end.
 */
export function* scanUntilDeadline<Cursor>(
  start: Cursor,
  visit: (from: Cursor) => Procedure<Cursor | null>,
  isEnough: () => boolean = () => false,
): Procedure<Cursor | null> {
  const endsAt = performance.now() + STEP_MS;
  let cursor: Cursor | null = start;
  do cursor = yield* visit(cursor);
  while (cursor !== null && !isEnough() && performance.now() < endsAt);
  return cursor;
}
