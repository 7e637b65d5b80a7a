/**
 * The records of a backup: lines of JSON, the same for every store, so that a backup of one store restores to another.
 * The first line is the header; the last one has the number of rows of each table and the SHA-256 of all lines before.
 * SOURCE: docs/formats.md, "Backups".
 */
import { Sha256 } from '../crypto/digest.ts';
import { BackupError, damaged } from './errors.ts';
import type { StoredKeysJson } from './stored-keys.ts';

export const BACKUP_FORMAT = 'leasehold-backup-v1';
const ANY_FORMAT = /^leasehold-backup-v\d+$/;
/** Far above any row: a value of 256 KiB, sealed and as base64. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const LINE_FEED = 10;
/** About 64 KiB. */
const KEYS_PER_LINE = 256;

// The header comes from the service, and the command makes a file's name from these.
const VAULT_ID = /^[A-Za-z0-9_-]{22}$/;
const CREATED_AT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** A value of a column: bytes are base64. */
export type Cell = string | number | null;

export interface BackupHeader {
  readonly format: string;
  /** The version of Leasehold that wrote it. */
  readonly leasehold: string;
  /** ISO 8601, when the snapshot was taken. */
  readonly created_at: string;
  readonly store: string;
  /** The number of the last migration. */
  readonly schema: number;
  readonly vault_id: string;
  /** The head record: the end of the log; null if it was deleted. */
  readonly log_end: { readonly seq: number; readonly hmac: string; readonly mac: string } | null;
  /** What opens the vault. */
  readonly key_slots: readonly { readonly name: string; readonly kind: string }[];
  /** The keyset and the key slots, sealed as they are stored. */
  readonly keys: StoredKeysJson;
  /** The single rows of the vault and of its head record, as the store's transfer has them. */
  readonly vault: unknown;
  /** The columns of each table, in the order in which the tables follow. */
  readonly tables: Readonly<Record<string, readonly string[]>>;
}

/** The private key of an agent that the service made, sealed under the vault's key. */
export interface SealedAgentKey {
  readonly id: string;
  /** Base64. */
  readonly sealed: string;
}

export interface BackupTotals {
  /** By table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly agent_keys: number;
}

export type BackupRecord =
  | { readonly kind: 'header'; readonly header: BackupHeader }
  | { readonly kind: 'rows'; readonly table: string; readonly rows: readonly (readonly Cell[])[] }
  | { readonly kind: 'agentKeys'; readonly keys: readonly SealedAgentKey[] }
  | { readonly kind: 'end'; readonly totals: BackupTotals };

/** Encodes the records of one backup, and counts them. */
export class BackupWriter {
  readonly #digest = new Sha256();
  readonly #rows: Record<string, number> = {};
  #agentKeys = 0;

  header(header: BackupHeader): Uint8Array {
    for (const table of Object.keys(header.tables)) this.#rows[table] = 0;
    return this.#line(header);
  }

  rows(table: string, rows: readonly (readonly Cell[])[]): Uint8Array {
    this.#rows[table] = (this.#rows[table] ?? 0) + rows.length;
    return this.#line({ table, rows });
  }

  *agentKeys(keys: readonly SealedAgentKey[]): Generator<Uint8Array> {
    this.#agentKeys += keys.length;
    for (let at = 0; at < keys.length; at += KEYS_PER_LINE) {
      yield this.#line({ agent_keys: keys.slice(at, at + KEYS_PER_LINE) });
    }
  }

  end(): Uint8Array {
    const totals: BackupTotals = { rows: this.#rows, agent_keys: this.#agentKeys };
    return encode({ end: totals, sha256: this.#digest.hex() });
  }

  #line(record: object): Uint8Array {
    const bytes = encode(record);
    this.#digest.update(bytes);
    return bytes;
  }
}

function encode(record: object): Uint8Array {
  return Buffer.from(`${JSON.stringify(record)}\n`);
}

/** Decodes and checks the records. Its last one is the end, or it throws. @throws BackupError, an error of `bytes` */
export async function* readRecords(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<BackupRecord> {
  const digest = new Sha256();
  const counts = new Map<string, number>();
  let header: BackupHeader | null = null;
  let agentKeys = 0;
  let hasEnded = false;
  for await (const line of splitLines(bytes)) {
    if (hasEnded) throw damaged('it continues after its end');
    const record = toRecord(parseLine(line), header);
    switch (record.kind) {
      case 'header':
        header = record.header;
        for (const table of Object.keys(header.tables)) counts.set(table, 0);
        break;
      case 'rows':
        counts.set(record.table, (counts.get(record.table) ?? 0) + record.rows.length);
        break;
      case 'agentKeys':
        agentKeys += record.keys.length;
        break;
      case 'end': {
        const { rows, agent_keys } = record.totals;
        const areCounted = agent_keys === agentKeys && [...counts].every(([table, count]) => rows[table] === count);
        if (!areCounted) throw damaged('it has other rows than its end says');
        if (record.sha256 !== digest.hex()) throw damaged('its digest differs');
        hasEnded = true;
      }
    }
    if (!hasEnded) digest.update(line);
    yield record;
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

type Json = Readonly<Record<string, unknown>>;
type ParsedRecord =
  | Exclude<BackupRecord, { kind: 'end' }>
  | (Extract<BackupRecord, { kind: 'end' }> & { readonly sha256: string });

function parseLine(line: Uint8Array): Json {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line));
    if (isObject(parsed)) return parsed;
  } catch (error) {
    throw damaged('a line is not JSON', error);
  }
  throw damaged('a line is not an object');
}

function toRecord(line: Json, header: BackupHeader | null): ParsedRecord {
  if (header === null) return { kind: 'header', header: toHeader(line) };
  const { table, rows, agent_keys: keys, end, sha256 } = line;
  if (typeof table === 'string' && Array.isArray(rows)) {
    const width = header.tables[table]?.length;
    if (width !== undefined && rows.every((row) => isRow(row, width))) return { kind: 'rows', table, rows };
  }
  if (Array.isArray(keys) && keys.every(isSealedKey)) return { kind: 'agentKeys', keys };
  if (isObject(end) && typeof sha256 === 'string' && isObject(end['rows'])) {
    return { kind: 'end', totals: end as unknown as BackupTotals, sha256 };
  }
  throw damaged('a line has an unknown form');
}

function toHeader(line: Json): BackupHeader {
  const { format, leasehold, created_at, store, schema, vault_id, tables, log_end } = line;
  if (typeof format !== 'string' || !ANY_FORMAT.test(format))
    throw new BackupError('The file is not a backup of Leasehold.');
  if (format !== BACKUP_FORMAT) {
    throw new BackupError(
      `The backup has the format ${format}, this Leasehold knows ${BACKUP_FORMAT}. Use the Leasehold that wrote it.`,
    );
  }
  const areColumns =
    isObject(tables) && Object.values(tables).every((names) => Array.isArray(names) && names.every(isText));
  if (
    ![leasehold, store].every(isText) ||
    !isText(vault_id) ||
    !VAULT_ID.test(vault_id) ||
    !isText(created_at) ||
    !CREATED_AT.test(created_at) ||
    Number.isNaN(Date.parse(created_at)) ||
    !isLogEnd(log_end) ||
    !Number.isSafeInteger(schema) ||
    !areColumns ||
    !isObject(line['vault']) ||
    !Array.isArray(line['key_slots']) ||
    !line['key_slots'].every((slot) => isObject(slot) && isText(slot['name']) && isText(slot['kind']))
  ) {
    throw damaged('its header has an unknown form');
  }
  return line as unknown as BackupHeader;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isLogEnd = (value: unknown): boolean =>
  value === null || (isObject(value) && Number.isSafeInteger(value['seq']) && Number(value['seq']) >= 0);
const isCell = (value: unknown): value is Cell => value === null || isText(value) || typeof value === 'number';
const isRow = (row: unknown, width: number): boolean => Array.isArray(row) && row.length === width && row.every(isCell);
const isSealedKey = (key: unknown): key is SealedAgentKey =>
  isObject(key) && isText(key['id']) && isText(key['sealed']);
