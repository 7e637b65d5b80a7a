/** Prepared statements by text, and procedures that run on them. Only for a fixed set of texts. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ChangeTarget } from '../changes.ts';
import type { Procedure, Row, Statement, Value } from '../statement.ts';
import type { Table } from '../table.ts';
import { isOutOfRange } from './database.ts';

export class Statements implements ChangeTarget {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();
  readonly #inserts = new Map<object, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  prepare(text: string): StatementSync {
    const known = this.#prepared.get(text);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(text);
    this.#prepared.set(text, statement);
    return statement;
  }

  insert<T>(table: Table<T>, item: T): void {
    const statement = this.#inserts.get(table) ?? this.#database.prepare(insertText(table));
    this.#inserts.set(table, statement);
    statement.run(...table.encode(item));
  }

  /** Replaces rows with the same key, or the same value in a unique index. */
  replace<T>(table: Table<T>, item: T): void {
    this.prepare(insertText(table, 'INSERT OR REPLACE')).run(...table.encode(item));
  }

  /** Returns the number of rows. */
  write({ parts, values }: Statement): number {
    return Number(this.prepare(parts.join('?')).run(...values).changes);
  }

  read({ parts, values }: Statement): readonly Row[] {
    return readAll(this.prepare(parts.join('?')), ...values);
  }

  run<T>(procedure: Procedure<T>): T {
    let step = procedure.next();
    while (!step.done) step = procedure.next(this.read(step.value));
    return step.value;
  }
}

/**
 * The rows of a query. A number that JavaScript cannot represent, which only an altered row has, is rounded: the row
 * then does not authenticate, and does not keep others from being read.
 */
export function readAll(statement: StatementSync, ...values: readonly Value[]): Row[] {
  try {
    return statement.all(...values);
  } catch (error) {
    if (!isOutOfRange(error)) throw error;
  }
  statement.setReadBigInts(true);
  try {
    return statement.all(...values).map(withNumbers);
  } finally {
    statement.setReadBigInts(false);
  }
}

/** `row` is an array if the statement returns arrays. */
function withNumbers(row: Row): Row {
  const toNumber = (value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value);
  if (Array.isArray(row)) return row.map(toNumber) as never;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toNumber(value)]));
}

export function insertText({ name, columns }: Pick<Table<object>, 'name' | 'columns'>, verb = 'INSERT'): string {
  const names = columns.map((column) => column.name);
  return `${verb} INTO ${name} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
}
