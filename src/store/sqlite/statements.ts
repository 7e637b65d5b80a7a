/** Prepared statements by text, and procedures that run on them. Only for a fixed set of texts. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ChangeTarget } from '../changes.ts';
import type { Procedure, Row, Statement } from '../statement.ts';
import type { Table } from '../table.ts';

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
    return this.prepare(parts.join('?')).all(...values);
  }

  run<T>(procedure: Procedure<T>): T {
    let step = procedure.next();
    while (!step.done) step = procedure.next(this.read(step.value));
    return step.value;
  }
}

export function insertText({ name, columns }: Pick<Table<object>, 'name' | 'columns'>, verb = 'INSERT'): string {
  const names = columns.map((column) => column.name);
  return `${verb} INTO ${name} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
}
