// Every table of the schema is in a backup, column by column, or is listed here with the reason why not.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { TABLES } from '../../src/store/schema.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { querySql } from '../kit/postmaster.ts';

/** Table and column, and why they are not carried as they are. */
const NOT_CARRIED: Readonly<Record<string, string>> = {
  'sqlite vault *': 'a record: written last',
  'sqlite audit_head *': 'a record: written last',
  'sqlite lease_spans *': 'follows from the leases',
  'sqlite access_counts *': 'carried by the ids of credentials',
  'sqlite credentials count_id': 'the row of its count',
  'sqlite credentials newest_at': 'carried as a version',
  'sqlite credentials newest_sealed': 'carried as a version',
  'postgres vault *': 'a record: written last',
  'postgres audit_head *': 'a record: written last',
  'postgres access_count_progress *': 'all accesses are in the counts',
  'postgres migrations *': 'of the schema',
  'postgres control_removals *': 'for nodes that run',
  'postgres agents epoch': 'for nodes that run',
  'postgres operators epoch': 'for nodes that run',
  'postgres policies epoch': 'for nodes that run',
};

type Columns = readonly { readonly table: string; readonly column: string }[];

function assertCarried(dialect: string, columns: Columns): void {
  const carried = new Set(TABLES.flatMap(({ name, columns: own }) => own.map((column) => `${name} ${column.name}`)));
  const isExcused = (table: string, column: string): boolean =>
    [`${dialect} ${table} *`, `${dialect} ${table} ${column}`].some((name) => name in NOT_CARRIED);
  const left = columns.filter(({ table, column }) => !carried.has(`${table} ${column}`) && !isExcused(table, column));
  assert.deepEqual(left, []);
  const there = new Set(columns.map(({ table, column }) => `${table} ${column}`));
  const isMade = (name: string): boolean => name.startsWith('access_counts ');
  assert.deepEqual(
    [...carried].filter((name) => !there.has(name) && !isMade(name)),
    [],
  );
}

test('every column of every SQLite table is copied or has a reason', () => {
  const file = join(temporaryDirectory({ after }), 'leasehold.db');
  const store = new SqliteStore(file);
  after(() => store.close());
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = database
    .prepare(
      `SELECT s.name AS "table", c.name AS "column" FROM sqlite_schema s JOIN pragma_table_info(s.name) c
       WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite_%'`,
    )
    .all();
  database.close();
  assert.notEqual(rows.length, 0);
  assertCarried(
    'sqlite',
    rows.map((row) => ({ table: String(row['table']), column: String(row['column']) })),
  );
});

test('every column of every PostgreSQL table is copied or has a reason', async (t) => {
  const url = await newDatabase(t);
  await (await PostgresStore.open(parseAddress(url))).close();
  const rows = await querySql(
    url,
    `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
     WHERE table_schema = 'leasehold' AND table_name <> 'effective_leases'`,
  );
  assert.notEqual(rows.length, 0);
  assertCarried(
    'postgres',
    rows.map((row) => ({ table: String(row['table']), column: String(row['column']) })),
  );
});
