/** Rows of the tables that answer to the log, as a writer of the database sees and writes them. */
import { type DatabaseRow, openDirectDb } from '../kit/direct-db.ts';
import { bytes } from '../kit/sealed-values.ts';
import { STORE } from '../kit/stores.ts';

export const TABLES = [
  'agents',
  'operators',
  'policies',
  'credentials',
  'usages',
  'sessions',
  'approvals',
  'credential_versions',
  'audit_head',
  'audit_entries',
] as const;
export type TableName = (typeof TABLES)[number];
export type Rows = Readonly<Record<TableName, readonly DatabaseRow[]>>;

export async function readRows(dataDir: string): Promise<Rows> {
  const db = await openDirectDb(dataDir);
  try {
    const tables: [string, readonly DatabaseRow[]][] = [];
    for (const table of TABLES) tables.push([table, await db.rows(`SELECT * FROM ${table}`)]);
    return Object.fromEntries(tables) as unknown as Rows;
  } finally {
    await db.close();
  }
}

const KEYS: Readonly<Record<TableName, readonly string[]>> = {
  agents: ['id'],
  operators: ['id'],
  policies: ['name'],
  credentials: ['path'],
  usages: ['path'],
  sessions: ['token_hash'],
  approvals: ['id'],
  credential_versions: ['credential_id', 'version'],
  audit_head: ['id'],
  audit_entries: ['seq'],
};

export function isSameKey(table: TableName, a: DatabaseRow, b: DatabaseRow): boolean {
  return KEYS[table].every((column) => a[column] === b[column]);
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  if (value instanceof Uint8Array) return bytes(Buffer.from(value).toString('hex'));
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
}

export function insert(table: TableName, row: DatabaseRow): string {
  const columns = Object.keys(row);
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((name) => literal(row[name])).join(', ')})`;
}

const where = (table: TableName, row: DatabaseRow): string =>
  KEYS[table].map((column) => `${column} = ${literal(row[column])}`).join(' AND ');

export function remove(table: TableName, row: DatabaseRow): string {
  return `DELETE FROM ${table} WHERE ${where(table, row)}`;
}

export function update(table: TableName, row: DatabaseRow, column: string, value: unknown): string {
  return `UPDATE ${table} SET ${column} = ${literal(value)} WHERE ${where(table, row)}`;
}

/** Makes room for the row too where its name is taken. */
export function replace(table: TableName, row: DatabaseRow): string {
  const name =
    table === 'agents' || table === 'operators'
      ? `; DELETE FROM ${table} WHERE lower(name) = ${literal(row['name']).toLowerCase()}`
      : '';
  return `${remove(table, row)}${name}; ${insert(table, row)}`;
}

/** The subject of the row in the log; null for a row that has none. SOURCE: docs/formats.md, "State in the log". */
export function subjectOf(table: TableName, row: DatabaseRow): string | null {
  switch (table) {
    case 'agents':
      return `agent:${String(row['name']).toLowerCase()}`;
    case 'operators':
      return String(row['name']).toLowerCase();
    case 'policies':
      return `policy:${row['name']}`;
    case 'credentials':
      return `credential:${row['path']}`;
    case 'usages':
      return `targets:${row['path']}`;
    case 'sessions':
      // A number beyond those of JavaScript is shown rounded.
      return `session:${Number(row['issued_at'])}:${row['token_hash']}`;
    case 'approvals':
      return `approval:${row['id']}`;
    default:
      return null;
  }
}

/** The columns that hold sealed values. */
export const SEALED = STORE === 'sqlite' ? ['newest_sealed', 'sealed'] : ['sealed'];
