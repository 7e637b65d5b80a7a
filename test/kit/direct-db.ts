/**
 * SQL directly on the database, as an attacker without the key could run it. Tables and columns have the same names in
 * every store; this file hides the remaining differences.
 */
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import postgres from 'postgres';
import { databaseUrlOf, STORE } from './stores.ts';

/** The columns of an entry that is not about a use, for direct inserts. */
export const ENTRY_COLUMNS =
  'seq, id, timestamp, event_type, agent_name, resource, action, result, policy_name, lease_id, reason, request_id, ' +
  'remote_addr, hmac';
/** The columns of a lease that came with a value. */
export const LEASE_COLUMNS =
  'seq, id, kind, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at, revoked_at';

export type DatabaseRow = Readonly<Record<string, unknown>>;

/** A direct connection to the database of a data directory. */
export interface DirectDb {
  /** Runs one or several statements. */
  run(sql: string): Promise<void>;
  /** The rows of one statement. */
  rows(sql: string): Promise<readonly DatabaseRow[]>;
  close(): Promise<void>;
}

export async function openDirectDb(dataDir: string): Promise<DirectDb> {
  const url = await databaseUrlOf(dataDir);
  return url === null ? openFile(join(dataDir, 'leasehold.db')) : openServer(url);
}

function openFile(file: string): DirectDb {
  const database = new DatabaseSync(file, { timeout: 10_000 });
  return {
    run: async (sql) => database.exec(sql),
    rows: async (sql) => database.prepare(sql).all(),
    close: async () => database.close(),
  };
}

function openServer(url: string): DirectDb {
  const session = postgres(url, {
    max: 1,
    fetch_types: false,
    onnotice: () => {},
    connection: { search_path: 'leasehold' },
    // Numbers in the form that SQLite returns.
    types: { number: { to: 20, from: [20], parse: Number, serialize: String } },
  });
  return {
    run: async (sql) => void (await session.unsafe(sql)),
    rows: async (sql) => [...(await session.unsafe<DatabaseRow[]>(sql))],
    close: () => session.end({ timeout: 1 }),
  };
}

async function withDirectDb<T>(dataDir: string, work: (db: DirectDb) => Promise<T>): Promise<T> {
  const db = await openDirectDb(dataDir);
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

export function executeSql(dataDir: string, sql: string): Promise<void> {
  return withDirectDb(dataDir, (db) => db.run(sql));
}

export function selectRows(dataDir: string, sql: string): Promise<readonly DatabaseRow[]> {
  return withDirectDb(dataDir, (db) => db.rows(sql));
}

const TABLES = {
  sqlite: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  postgres: "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'leasehold' ORDER BY name",
};

/** Every row of every table, in an order that depends only on their contents. */
export function dumpDatabase(dataDir: string): Promise<Readonly<Record<string, readonly DatabaseRow[]>>> {
  return withDirectDb(dataDir, async (db) => {
    const dump: Record<string, readonly DatabaseRow[]> = {};
    for (const { name } of await db.rows(TABLES[STORE])) {
      const rows = (await db.rows(`SELECT * FROM ${String(name)}`)).map((row) => ({ row, text: textOf(row) }));
      dump[String(name)] = rows.sort((a, b) => (a.text < b.text ? -1 : 1)).map(({ row }) => ({ ...row }));
    }
    return dump;
  });
}

/**
 * Tables that a service writes in the background: the high-water time, the checkpoints of each minute and, on
 * PostgreSQL, access counts.
 */
const WRITTEN_BY_SERVICE = {
  sqlite: ['vault', 'checkpoints'],
  postgres: ['vault', 'checkpoints', 'access_counts', 'access_count_progress'],
};

/** The same without those tables. */
export async function dumpCallerData(dataDir: string): Promise<Readonly<Record<string, readonly DatabaseRow[]>>> {
  const dump = await dumpDatabase(dataDir);
  return Object.fromEntries(Object.entries(dump).filter(([table]) => !WRITTEN_BY_SERVICE[STORE].includes(table)));
}

const textOf = (row: DatabaseRow): string =>
  JSON.stringify(row, (_, value) => (value instanceof Uint8Array ? [...value] : value));

/** All stored bytes. */
export async function readDatabaseBytes(dataDir: string): Promise<Buffer> {
  if (STORE === 'sqlite') {
    const files = globSync('leasehold.db*', { cwd: dataDir });
    return Buffer.concat(files.map((name) => readFileSync(join(dataDir, name))));
  }
  const values = Object.values(await dumpDatabase(dataDir)).flatMap((rows) =>
    rows.flatMap((row) => Object.values(row)),
  );
  return Buffer.concat(values.map((value) => Buffer.from(value instanceof Uint8Array ? value : `${value}\n`)));
}

/** The files of the data directory and the external database that contain the bytes. */
export async function findBytes(dataDir: string, bytes: string | Uint8Array): Promise<string[]> {
  const files = globSync('**/{*,.*}', { cwd: dataDir, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const found = files.filter((path) => readFileSync(path).includes(bytes)).map((path) => relative(dataDir, path));
  return STORE === 'postgres' && (await readDatabaseBytes(dataDir)).includes(bytes)
    ? [...found, 'the database']
    : found;
}

/** Blocks all writers until it is released. */
export async function lockDatabase(dataDir: string): Promise<{ release(): Promise<void> }> {
  const db = await openDirectDb(dataDir);
  await db.run(STORE === 'sqlite' ? 'BEGIN IMMEDIATE' : 'BEGIN; SELECT 1 FROM audit_head FOR UPDATE');
  return {
    async release() {
      await db.run('ROLLBACK');
      await db.close();
    },
  };
}
