// Alters decoded backups at random, as a stranger could: any field of any record, the order and number of records, and
// the JSON itself. Every choice follows from a seed.

import { BACKUP_FORMAT, type Cell } from '../../src/backup/records.ts';
import { Sha256 } from '../../src/crypto/primitives.ts';
import type { Dice } from '../kit/dice.ts';
import type { Content } from './content.ts';

/** Must not be in any message: the content of a field is never repeated. */
export const MARKER = 'PRECIOUS';

const TEXTS: readonly string[] = [
  '',
  '.',
  '..',
  '.pending',
  '__proto__',
  'constructor',
  'toString',
  'admin',
  'service',
  'null',
  'removed',
  '*',
  `../../${MARKER}`,
  `../../../${MARKER}`,
  `/${MARKER}`,
  `a/../../${MARKER}`,
  `..\\${MARKER}`,
  `worker/${MARKER}`,
  `\u0000${MARKER}`,
  `\ud800${MARKER}`,
  `\u001b]0;${MARKER}\u0007`,
  `\u009b2J${MARKER}`,
  `${MARKER}\r\n${MARKER}`,
  `\u202e${MARKER}`,
  `${MARKER} `,
  `Ａ${MARKER}`,
  'WORKER',
  'x'.repeat(70_000),
  'ü'.repeat(600),
  '[]',
  '{}',
  '[[]]',
  '{"__proto__":{"x":1}}',
  `["${MARKER}"]`,
  '[null]',
  '[1,2]',
  '"x"',
  'true',
  '{',
  '1e999',
  '['.repeat(60_000),
  `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`,
  '{"kind":"bearer","kind":"query"}',
  'AAAA',
  'AAA=',
  'AAB=',
  '====',
  Buffer.alloc(32).toString('base64'),
  Buffer.alloc(31).toString('base64'),
  '00000000-0000-0000-0000-000000000000',
  '01890000-0000-7000-8000-00000000000G',
  '9999-99-99T99:99:99.999Z',
];
const OTHERS: readonly unknown[] = [
  null,
  true,
  false,
  [],
  {},
  [[]],
  { a: 1 },
  0,
  -1,
  -0,
  1,
  2,
  0.5,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 53,
  2 ** 53 - 1,
  Number.MIN_SAFE_INTEGER,
  253_402_300_800_000,
  8.64e15,
];

export class Mutator {
  readonly #dice: Dice;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  #value(previous: unknown): unknown {
    const choice = this.#dice.below(10);
    if (choice < 4) return this.#dice.pick(TEXTS);
    if (choice < 6) return this.#dice.pick(OTHERS);
    if (typeof previous === 'number') return previous + this.#dice.pick([-1, 1, 0.5, 2 ** 40, -(2 ** 40)]);
    if (typeof previous !== 'string') return this.#dice.pick(TEXTS);
    const at = this.#dice.below(previous.length + 1);
    const added = this.#dice.pick([MARKER, '/', '..', '\u0000', '\u001b', ' ', 'A', '"', '=', '\ud800']);
    return previous.slice(0, at) + added + previous.slice(at + this.#dice.below(2));
  }

  /** Alters a column, a row or a table; returns what it did. */
  alterRows(content: Content): string {
    const [table, rows] = this.#dice.pick([...content.tables].filter(([, all]) => all.length > 0));
    const at = this.#dice.below(rows.length);
    const row = rows[at] ?? [];
    // An earlier alteration may have put something else in the place of the row.
    const cells = Array.isArray(row) ? row : [];
    const columns = content.header.tables[table] ?? [];
    const replace = (...items: unknown[]): void => void rows.splice(at, 1, ...(items as (readonly Cell[])[]));
    switch (this.#dice.below(9)) {
      case 0:
        replace(row, row);
        return `${table}: a row twice`;
      case 1:
        replace();
        return `${table}: a row dropped`;
      case 2:
        replace(cells.slice(1));
        return `${table}: a cell dropped`;
      case 3: {
        replace([...cells, this.#value(null)]);
        return `${table}: a cell added`;
      }
      case 4:
        rows.reverse();
        return `${table}: rows reversed`;
      case 5:
        replace(this.#value(null));
        return `${table}: no row`;
      default: {
        const column = this.#dice.below(columns.length);
        const value = this.#value(cells[column]);
        replace(cells.map((cell, index) => (index === column ? value : cell)));
        return `${table}.${columns[column]}: ${JSON.stringify(value)?.slice(0, 60)}`;
      }
    }
  }

  /** Alters one member somewhere in the value; returns where. */
  alterJson(value: unknown, where: string): string {
    if (typeof value !== 'object' || value === null) return where;
    const members = value as Record<string, unknown>;
    const names = Object.keys(members);
    const name = names.length === 0 ? 'x' : this.#dice.pick(names);
    const member = members[name];
    if (typeof member === 'object' && member !== null && this.#dice.below(4) > 0) {
      return this.alterJson(member, `${where}.${name}`);
    }
    const choice = this.#dice.below(6);
    if (choice === 0 && !Array.isArray(value)) delete members[name];
    else if (choice === 1 && Array.isArray(value)) value.push(member ?? this.#value(null));
    else if (choice === 1) members[this.#dice.pick(['extra', 'tables', MARKER])] = this.#value(null);
    else members[name] = this.#value(member);
    return `${where}.${name}: ${JSON.stringify(members[name])?.slice(0, 60)}`;
  }

  /** Alters the text of one line. */
  alterLine(line: string): string {
    const at = this.#dice.below(line.length);
    switch (this.#dice.below(5)) {
      case 0:
        return line.replace('{', '{"__proto__":{"table":"agents"},');
      case 1:
        return line.replace('{', `{"table":"agents","rows":[["${MARKER}"]],`);
      case 2:
        return `${line.slice(0, at)}${this.#dice.pick(TEXTS)}${line.slice(at)}`.replaceAll('\n', ' ');
      case 3:
        return `${'['.repeat(100_000)}${line}`;
      default:
        return `${line.slice(0, at)}${line.slice(at + 1)}`;
    }
  }
}

/** The lines of a backup with the content, without checks of what it has. */
export function toLines({ header, tables, agentKeys }: Content): string[] {
  const rows = Object.fromEntries(
    Object.keys(Object(header.tables)).map((table) => [table, tables.get(table)?.length ?? 0]),
  );
  return [
    JSON.stringify({ ...header, format: header.format ?? BACKUP_FORMAT }),
    ...(agentKeys.length === 0 ? [] : [JSON.stringify({ agent_keys: agentKeys })]),
    ...[...tables].filter(([, all]) => all.length > 0).map(([table, all]) => JSON.stringify({ table, rows: all })),
    JSON.stringify({ rows, agent_keys: agentKeys.length }),
  ];
}

/** Makes records with the right digest: the last line contains the totals. */
export function toRecords(lines: readonly string[]): Uint8Array[] {
  const digest = new Sha256();
  return lines.map((line, index) => {
    const isEnd = index === lines.length - 1;
    const bytes = Buffer.from(`${isEnd ? `{"end":${line},"sha256":"${digest.hex()}"}` : line}\n`);
    if (!isEnd) digest.update(bytes);
    return bytes;
  });
}
