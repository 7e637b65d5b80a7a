// A damaged page can hold null in a column that is never null: the MAC of an entry near the end of the log.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { startTestService } from '../kit/service.ts';

/** Sets a column to null, as if it were not declared NOT NULL. */
function setNull(file: string, table: string, column: string, where: string): void {
  const open = (): DatabaseSync => new DatabaseSync(file, { defensive: false });
  const declare = (database: DatabaseSync, from: string, to: string): void => {
    database.exec('PRAGMA writable_schema = ON');
    database.prepare('UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = ?').run(from, to, table);
    database.close();
  };
  declare(open(), `${column} TEXT NOT NULL`, `${column} TEXT CHECK(1)`);
  const database = open();
  database.exec(`UPDATE ${table} SET ${column} = NULL WHERE ${where}`);
  declare(database, `${column} TEXT CHECK(1)`, `${column} TEXT NOT NULL`);
}

test('a start succeeds when an entry near the end has no MAC, and verification finds it', async (t) => {
  const service = await startTestService(t);
  for (const path of ['a', 'b', 'c']) await service.admin.post('/api/v1/credentials', { path, value: 'v' });
  await service.stop();
  setNull(join(service.dataDir, 'leasehold.db'), 'audit_entries', 'hmac', 'seq = 4');
  const again = await startTestService(t, [], service.dataDir);
  const { valid, break_at_entry } = (await again.admin.get('/api/v1/audit/verify')).body.data;
  assert.deepEqual([valid, break_at_entry], [false, 4]);
});
