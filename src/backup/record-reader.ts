/**
 * Reads the records of a backup. A backup is input from a stranger: the public recipient suffices to write one. Every
 * field passes the rule of its column before a caller sees it, and an error names the record, the field and the rule,
 * never the content. SOURCE: docs/formats.md, "Backups".
 */
import { timestamp } from '../core/grammars.ts';
import { Sha256 } from '../crypto/primitives.ts';
import { isRecord } from '../engine/field.ts';
import { NEWEST_SCHEMA, TABLES } from '../store/schema.ts';
import { type Column, mac, rulesOf, type Table, time } from '../store/table.ts';
import {
  anyText,
  count,
  equalTo,
  integer,
  type JsonFields,
  listOf,
  mapOf,
  matching,
  nullable,
  objectOf,
  oneOf,
  parsed,
  type ValueRule,
} from '../store/value-rules.ts';
import { KeySlot } from '../vault/keys/keyset.ts';
import { BackupError, damaged } from './errors.ts';
import {
  BACKUP_FORMAT,
  type BackupHeader,
  type BackupRecord,
  type Cell,
  ENCRYPTED_AGENT_KEY_RULES,
  HEAD_RULES,
  KEYSET_RULES,
  SLOT_RULES,
  TOTALS_RULES,
} from './records.ts';

const ANY_FORMAT = /^leasehold-backup-v\d{1,9}$/;
/** Far above any row: a value of 256 KiB, encrypted and as base64. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const LINE_FEED = 10;
const MAX_AGENT_KEYS = 1_000_000;
const TABLE_NAMES = TABLES.map(({ name }) => name);
const { maxRows: MAX_SLOTS } = KeySlot;
const { name: SLOT_NAME, kind: SLOT_KIND } = rulesOf(KeySlot.fields);
const MAX_COLUMNS = 100;

const vaultId = matching(/^[A-Za-z0-9_-]{22}$/, 22, 'must be 22 characters of base64url');
const keyCheck = mac;

const tables: ValueRule = (value) =>
  mapOf(/^[a-z_]{1,64}$/, listOf(anyText(64), 1, MAX_COLUMNS), TABLES.length)(value) ??
  (Object.keys(Object(value)).every((name) => TABLE_NAMES.includes(name)) ? null : 'has an unknown table');

/** Three numbers, and optionally the name of a pre-release. SOURCE: Semantic Versioning 2.0.0, 9. */
const VERSION_RULE: ValueRule = matching(
  /^\d{1,5}\.\d{1,5}\.\d{1,5}(?:-[0-9A-Za-z.-]{1,40})?$/,
  58,
  'must be a version',
);

/** WHY so strict: the CLI prints these fields, and makes the name of a file from them. */
const HEADER_RULES: ValueRule = objectOf({
  format: equalTo(BACKUP_FORMAT),
  leasehold: VERSION_RULE,
  created_at: parsed(timestamp.parse),
  store: oneOf(['sqlite', 'postgres']),
  schema: integer(1, 9999),
  vault_id: vaultId,
  log_end: nullable(objectOf({ seq: count, hmac: mac, mac: mac })),
  key_slots: listOf(objectOf({ name: SLOT_NAME, kind: SLOT_KIND }), 0, MAX_SLOTS),
  keys: objectOf({ keyCheck, vaultId, keyset: KEYSET_RULES, slots: listOf(SLOT_RULES, 0, MAX_SLOTS) }),
  vault: objectOf({
    keyCheck,
    vaultId,
    createdAt: time,
    highWaterTime: time,
    head: nullable(HEAD_RULES),
    highestSeq: count,
  }),
  tables,
});

/** Decodes and checks the records. Throws unless the last one is the end. @throws BackupError, an error of `bytes` */
export async function* readRecords(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<BackupRecord> {
  const digest = new Sha256();
  let tables: TableReaders | null = null;
  const agentKeys = new AgentKeys();
  let hasEnded = false;
  let number = 0;
  for await (const line of splitLines(bytes)) {
    number += 1;
    if (hasEnded) throw damaged('it continues after its end');
    const fields = parseLine(line, number);
    if (tables === null) {
      const header = toHeader(fields);
      tables = new TableReaders(header);
      digest.update(line);
      yield { kind: 'header', header };
    } else if ('table' in fields) {
      const record = tables.read(fields, number);
      digest.update(line);
      yield record;
    } else if ('agent_keys' in fields) {
      const record = agentKeys.read(fields, number);
      digest.update(line);
      yield record;
    } else {
      const record = toEnd(fields, number);
      const { rows, agent_keys } = record.totals;
      if (agent_keys !== agentKeys.count || !tables.areCounted(rows)) {
        throw damaged('it has other rows than its end says');
      }
      if (record.sha256 !== digest.hex()) throw damaged('its digest differs');
      hasEnded = true;
      yield record;
    }
  }
  if (!hasEnded) throw damaged('its end is missing');
}

/** Lines with their line feeds. */
async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, start)) {
      yield Buffer.concat([...parts, chunk.subarray(start, at + 1)]);
      parts = [];
      length = 0;
      start = at + 1;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > MAX_LINE_BYTES) throw damaged('a line is too long');
  }
  if (length > 0) throw damaged('it ends within a line');
}

function parseLine(line: Uint8Array, number: number): JsonFields {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line));
    if (isRecord(parsed)) return parsed;
  } catch (error) {
    throw damaged(`record ${number} is not JSON`, error);
  }
  throw damaged(`record ${number} is not an object`);
}

/** @throws BackupError unless the record has exactly these fields */
function assertFields(fields: JsonFields, names: readonly string[], number: number): void {
  const given = Object.keys(fields);
  if (given.length === names.length && names.every((name) => given.includes(name))) return;
  throw damaged(`record ${number} has an unknown form`);
}

/** @param where names the record, such as `record 1 (the header)` */
function assertRule(rule: ValueRule, value: unknown, where: string): void {
  const broken = rule(value);
  if (broken !== null) throw damaged(`${where}: ${broken}`);
}

function toHeader(fields: JsonFields): BackupHeader {
  const { format } = fields;
  if (typeof format !== 'string' || !ANY_FORMAT.test(format))
    throw new BackupError('The file is not a backup of Leasehold.');
  if (format !== BACKUP_FORMAT) {
    throw new BackupError(
      `The backup has the format ${format}, this Leasehold knows ${BACKUP_FORMAT}. Use the Leasehold that wrote it.`,
    );
  }
  assertKnownSchema(fields);
  assertRule(HEADER_RULES, fields, 'record 1 (the header)');
  return fields as unknown as BackupHeader;
}

/** ORDER: before the rules, which a newer header need not follow. @throws BackupError */
function assertKnownSchema({ schema, leasehold }: JsonFields): void {
  if (!Number.isSafeInteger(schema) || Number(schema) <= NEWEST_SCHEMA) return;
  const version = VERSION_RULE(leasehold) === null ? ` ${String(leasehold)}` : '';
  throw new BackupError(
    `The backup has schema ${Number(schema)}, this Leasehold knows up to ${NEWEST_SCHEMA}. Restore it with the Leasehold${version} that wrote it, or a newer one.`,
  );
}

function toEnd(fields: JsonFields, number: number): BackupRecord & { readonly kind: 'end' } {
  assertFields(fields, ['end', 'sha256'], number);
  const { end, sha256 } = fields;
  assertRule(TOTALS_RULES, end, `record ${number} (the end)`);
  const totals = end as (BackupRecord & { readonly kind: 'end' })['totals'];
  if (typeof sha256 !== 'string') throw damaged(`record ${number} (the end): sha256: must be a string`);
  return { kind: 'end', totals, sha256 };
}

class AgentKeys {
  readonly #ids = new Set<string>();
  readonly #rule = listOf(ENCRYPTED_AGENT_KEY_RULES, 1, MAX_AGENT_KEYS);

  get count(): number {
    return this.#ids.size;
  }

  read(fields: JsonFields, number: number): BackupRecord & { readonly kind: 'agentKeys' } {
    assertFields(fields, ['agent_keys'], number);
    const where = `record ${number} (private keys of agents)`;
    assertRule(this.#rule, fields['agent_keys'], where);
    const keys = fields['agent_keys'] as (BackupRecord & { readonly kind: 'agentKeys' })['keys'];
    for (const { id } of keys) {
      if (this.#ids.has(id)) throw damaged(`${where}: id is that of another one`);
      this.#ids.add(id);
    }
    if (this.#ids.size > MAX_AGENT_KEYS) throw damaged(`${where}: there are more than ${MAX_AGENT_KEYS}`);
    return { kind: 'agentKeys', keys };
  }
}

class TableReaders {
  readonly #readers = new Map<string, RowReader>();
  #position = 0;

  constructor({ tables, schema }: BackupHeader) {
    for (const table of TABLES) {
      const columns = tables[table.name];
      if (columns !== undefined) this.#readers.set(table.name, new RowReader(table, schema, columns));
    }
  }

  read(fields: JsonFields, number: number): BackupRecord & { readonly kind: 'rows' } {
    assertFields(fields, ['table', 'rows'], number);
    const { table: given, rows } = fields;
    const table = typeof given === 'string' ? given : '';
    const reader = this.#readers.get(table);
    const position = TABLE_NAMES.indexOf(table);
    // Rows refer to rows of earlier tables.
    if (reader === undefined || position < this.#position) {
      throw damaged(`record ${number} has rows of a table that is unknown or out of order`);
    }
    this.#position = position;
    if (!Array.isArray(rows) || rows.length === 0) throw damaged(`record ${number} has no list of rows`);
    for (const [index, row] of rows.entries()) {
      const broken = reader.read(row);
      if (broken !== null) throw damaged(`record ${number}, row ${index + 1} of ${table}, ${broken}`);
    }
    return { kind: 'rows', table, rows };
  }

  areCounted(rows: Readonly<Record<string, number>>): boolean {
    const counted = Object.keys(rows).length === this.#readers.size;
    return counted && [...this.#readers].every(([table, { count }]) => rows[table] === count);
  }
}

class RowReader {
  readonly #table: Table<object>;
  readonly #columns: readonly (readonly [column: Column, position: number])[];
  readonly #width: number;
  readonly #keyPositions: readonly number[];
  readonly #uniquePosition: number;
  readonly #seen = new Set<string>();
  #last: readonly Cell[] | null = null;
  #count = 0;

  /** The header names the schema and the columns. */
  constructor(table: Table<object>, schema: number, columns: readonly string[]) {
    const { name, key, unique } = table;
    this.#table = table;
    const known = table.columns.filter(({ since }) => since <= schema);
    this.#columns = known.map((column) => [column, columns.indexOf(column.name)] as const);
    this.#width = columns.length;
    this.#keyPositions = key.map((column) => columns.indexOf(column));
    this.#uniquePosition = unique === null ? -1 : columns.indexOf(unique.column);
    if (columns.length !== known.length || this.#columns.some(([, position]) => position === -1)) {
      throw damaged(`record 1 (the header): tables ${name} must name each known column once`);
    }
  }

  get count(): number {
    return this.#count;
  }

  /** The rule that the row breaks, with the column's name; null if it is valid. */
  read(row: unknown): string | null {
    if (!Array.isArray(row) || row.length !== this.#width) return `must have ${this.#width} columns`;
    for (const [{ name, rule }, position] of this.#columns) {
      const broken = rule(row[position]);
      if (broken !== null) return `${name} ${broken}`;
    }
    const { key, maxRows } = this.#table;
    if (this.#last !== null && !this.#follows(row, this.#last)) {
      return `${key.join(' and ')} must be greater than in the row before`;
    }
    this.#last = row;
    this.#count += 1;
    if (this.#count > (maxRows ?? Number.MAX_SAFE_INTEGER)) {
      return `is more than the ${maxRows} that are possible`;
    }
    const { unique } = this.#table;
    if (unique === null) return null;
    const text = String(row[this.#uniquePosition]);
    const name = unique.isCaseless ? text.toLowerCase() : text;
    if (this.#seen.has(name)) return `${unique.column} is that of another row`;
    this.#seen.add(name);
    return null;
  }

  /** Keys are numbers, or texts of ASCII characters, which both databases compare by their bytes. */
  #follows(row: readonly Cell[], last: readonly Cell[]): boolean {
    for (const position of this.#keyPositions) {
      const [value, previous] = [row[position] ?? '', last[position] ?? ''];
      if (value !== previous) return value > previous;
    }
    return false;
  }
}
