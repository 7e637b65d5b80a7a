/**
 * SQL behind the service's back, as somebody would do it who has the database and no key. Tables and columns are called the same in
 * every store; where a store keeps things otherwise, or says them otherwise, it is hidden here.
 */
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import postgres from 'postgres';
import { databaseOf, STORE } from './stores.ts';

export type OutsideRow = Readonly<Record<string, unknown>>;

/** A connection of somebody's own to the database of a data directory. */
export interface Outside {
  /** One statement or several. */
  run(sql: string): Promise<void>;
  /** The rows of one statement. */
  rows(sql: string): Promise<readonly OutsideRow[]>;
  close(): Promise<void>;
}

export async function openOutside(dataDir: string): Promise<Outside> {
  const url = await databaseOf(dataDir);
  return url === null ? openFile(join(dataDir, 'leasehold.db')) : openServer(url);
}

function openFile(file: string): Outside {
  const database = new DatabaseSync(file);
  return {
    run: async (sql) => database.exec(sql),
    rows: async (sql) => database.prepare(sql).all(),
    close: async () => database.close(),
  };
}

function openServer(url: string): Outside {
  const session = postgres(url, {
    max: 1,
    fetch_types: false,
    onnotice: () => {},
    connection: { search_path: 'leasehold' },
    // As SQLite gives them.
    types: { number: { to: 20, from: [20], parse: Number, serialize: String } },
  });
  return {
    run: async (sql) => void (await session.unsafe(sql)),
    rows: async (sql) => [...(await session.unsafe<OutsideRow[]>(sql))],
    close: () => session.end({ timeout: 1 }),
  };
}

async function withOutside<T>(dataDir: string, work: (outside: Outside) => Promise<T>): Promise<T> {
  const outside = await openOutside(dataDir);
  try {
    return await work(outside);
  } finally {
    await outside.close();
  }
}

export function runOutside(dataDir: string, sql: string): Promise<void> {
  return withOutside(dataDir, (outside) => outside.run(sql));
}

export function rowsOutside(dataDir: string, sql: string): Promise<readonly OutsideRow[]> {
  return withOutside(dataDir, (outside) => outside.rows(sql));
}

const TABLES = {
  sqlite: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  postgres: "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'leasehold' ORDER BY name",
};

/** Every row of every table, in an order that only depends on what is in them. */
export function dumpOutside(dataDir: string): Promise<Readonly<Record<string, readonly OutsideRow[]>>> {
  return withOutside(dataDir, async (outside) => {
    const dump: Record<string, readonly OutsideRow[]> = {};
    for (const { name } of await outside.rows(TABLES[STORE])) {
      const rows = (await outside.rows(`SELECT * FROM ${String(name)}`)).map((row) => ({ row, text: textOf(row) }));
      dump[String(name)] = rows.sort((a, b) => (a.text < b.text ? -1 : 1)).map(({ row }) => ({ ...row }));
    }
    return dump;
  });
}

/** What a service writes by itself, beside its callers: the time that it has seen, and on PostgreSQL what it has added up. */
const BESIDES = { sqlite: ['vault'], postgres: ['vault', 'access_counts', 'access_count_progress'] };

/** The same, without that. */
export async function dumpCalled(dataDir: string): Promise<Readonly<Record<string, readonly OutsideRow[]>>> {
  const dump = await dumpOutside(dataDir);
  return Object.fromEntries(Object.entries(dump).filter(([table]) => !BESIDES[STORE].includes(table)));
}

const textOf = (row: OutsideRow): string =>
  JSON.stringify(row, (_, value) => (value instanceof Uint8Array ? [...value] : value));

/** All that the store holds, as it lies there. */
export async function bytesOutside(dataDir: string): Promise<Buffer> {
  if (STORE === 'sqlite') {
    const files = globSync('leasehold.db*', { cwd: dataDir });
    return Buffer.concat(files.map((name) => readFileSync(join(dataDir, name))));
  }
  const values = Object.values(await dumpOutside(dataDir)).flatMap((rows) => rows.flatMap((row) => Object.values(row)));
  return Buffer.concat(values.map((value) => Buffer.from(value instanceof Uint8Array ? value : `${value}\n`)));
}

/** What has the bytes in it: files of the data directory, and the database where that lies elsewhere. */
export async function placesWith(dataDir: string, bytes: string | Uint8Array): Promise<string[]> {
  const files = globSync('**/{*,.*}', { cwd: dataDir, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const found = files.filter((path) => readFileSync(path).includes(bytes)).map((path) => relative(dataDir, path));
  return STORE === 'postgres' && (await bytesOutside(dataDir)).includes(bytes) ? [...found, 'the database'] : found;
}

/** Lets nobody write until it is released. */
export async function lockOutside(dataDir: string): Promise<{ release(): Promise<void> }> {
  const outside = await openOutside(dataDir);
  await outside.run(STORE === 'sqlite' ? 'BEGIN IMMEDIATE' : 'BEGIN; SELECT 1 FROM audit_head FOR UPDATE');
  return {
    async release() {
      await outside.run('ROLLBACK');
      await outside.close();
    },
  };
}
