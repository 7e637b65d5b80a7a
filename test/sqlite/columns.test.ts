// Compares docs/formats.md with the database: each table, and each column of those without a declaration.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { readMigrations } from '../../src/store/migrations.ts';
import { ROOT } from '../conventions/source.ts';

const page = readFileSync(join(ROOT, 'docs/formats.md'), 'utf8');

test('the tables and columns on the page are those of the migrated database', () => {
  const database = new DatabaseSync(':memory:');
  const migrations = readMigrations('sqlite');
  for (const { sql } of migrations) database.exec(sql);
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'")
    .all();
  const real = tables.map(({ name }) => {
    const columns = database.prepare('SELECT name FROM pragma_table_info(?)').all(String(name));
    return [String(name), ...columns.map((column) => String(column['name'])).sort()];
  });
  database.close();
  const [, section = ''] = page.split('\n## The database\n');
  const rows = section.matchAll(/^\| `(\w+)` \| ((?:`\w+`(?:, )?)+|the fields of `src\/[^|]+) \|/gm);
  const told = [...rows].map(([, table = '', columns = '']) =>
    columns.startsWith('the fields')
      ? (real.find(([name]) => name === table) ?? [table])
      : [table, ...[...columns.matchAll(/\w+/g)].map(([word]) => word).sort()],
  );
  assert.deepEqual(told, real);
});
