/** Reads a table of a configuration field by field. An error names the unknown, missing or invalid field. */

import { isAbsolute } from 'node:path';
import { UsageError } from '../platform/errors.ts';

interface Bounds {
  readonly least: number;
  readonly most: number;
}

/** A Map, because it has no inherited fields. */
const entriesOf = (table: unknown): Map<string, unknown> | null =>
  typeof table === 'object' && table !== null && !Array.isArray(table) && !(table instanceof Date)
    ? new Map(Object.entries(table))
    : null;

export class Fields {
  readonly #fields: ReadonlyMap<string, unknown>;
  readonly #at: string;

  /** `known`: null to accept every name. @throws UsageError for an unknown name */
  constructor(table: unknown, at: string, known: readonly string[] | null) {
    const fields = entriesOf(table);
    if (fields === null) throw new UsageError(`${at}: must be a table`);
    this.#fields = fields;
    this.#at = at;
    for (const name of fields.keys()) {
      if (known !== null && !known.includes(name)) {
        throw this.broken(name, `is unknown; known are ${known.join(', ')}`);
      }
    }
  }

  names(): string[] {
    return [...this.#fields.keys()];
  }

  broken(name: string, rule: string): UsageError {
    return new UsageError(`${this.#at === '' ? '' : `${this.#at}.`}${name}: ${rule}`);
  }

  table(name: string, known: readonly string[] | null = null): Fields {
    const found = this.optionalTable(name, known);
    if (found === null) throw this.broken(name, 'is missing');
    return found;
  }

  optionalTable(name: string, known: readonly string[] | null = null): Fields | null {
    const value = this.#fields.get(name);
    return value === undefined ? null : new Fields(value, this.#at === '' ? name : `${this.#at}.${name}`, known);
  }

  text(name: string, { least, most }: Bounds): string {
    const value = this.#fields.get(name);
    if (value === undefined) throw this.broken(name, 'is missing');
    return this.#checkText(name, value, { least, most });
  }

  texts(name: string): string[] {
    const value = this.#fields.get(name);
    if (value === undefined) return [];
    if (!Array.isArray(value) || value.length > 64) throw this.broken(name, 'must be a list of at most 64 texts');
    return value.map((each) => this.#checkText(name, each, { least: 0, most: 4096 }));
  }

  absolute(name: string): string {
    const value = this.text(name, { least: 1, most: 4096 });
    if (!isAbsolute(value)) throw this.broken(name, 'must be an absolute path');
    return value;
  }

  number(name: string, { least, most, otherwise }: Bounds & { readonly otherwise: number }): number {
    const value = this.#fields.get(name) ?? otherwise;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
      throw this.broken(name, `must be a whole number from ${least} to ${most}`);
    }
    return value;
  }

  isOn(name: string): boolean {
    const value = this.#fields.get(name) ?? false;
    if (typeof value !== 'boolean') throw this.broken(name, 'must be true or false');
    return value;
  }

  #checkText(name: string, value: unknown, { least, most }: Bounds): string {
    if (typeof value !== 'string' || value.length < least || value.length > most || value.includes('\0')) {
      throw this.broken(name, `must be text of ${least} to ${most} characters, without a null`);
    }
    return value;
  }
}
