// Values that only an altered row or a damaged page has: numbers that JavaScript cannot represent, text that is not
// UTF-8, and null in a column that is never null. The row is named, and nothing else stops working.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { executeSql } from '../kit/direct-db.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const HUGE = '9223372036854775807';
const VALUE = '/api/v1/credentials/prod/key';

/** The rows of each table, altered while the service is stopped, and the service that was started again. */
async function altered(t: TestContext, sql: string): Promise<TestService & { token: string }> {
  const service = await startTestService(t);
  await service.admin.post('/api/v1/credentials', { path: 'prod/key', value: 'one' });
  await service.admin.put('/api/v1/targets/prod/key', { service: 'openai' });
  await service.admin.post('/api/v1/credentials', { path: 'prod/other', value: 'two' });
  const { token } = await service.agent('bot', { 'prod/*': ['retrieve'] });
  await service.stop();
  await executeSql(service.dataDir, sql);
  return { ...(await startTestService(t, [], service.dataDir)), token };
}

async function problemsOf({ admin }: TestService): Promise<string[]> {
  const { body, text } = await admin.get('/api/v1/audit/verify?state=true');
  assert.equal(body.data?.valid, true, text);
  return body.data.state.problems.map(({ subject, problem }: Record<string, string>) => `${subject}: ${problem}`);
}

test('rows with a huge number grant nothing and are named, others are used, and the chain breaks at such an entry', async (t) => {
  const service = await altered(
    t,
    `UPDATE agents SET registered_at = ${HUGE};
    UPDATE policies SET max_ttl_seconds = ${HUGE};
    UPDATE credentials SET created_at = ${HUGE} WHERE path = 'prod/key';
    UPDATE credential_targets SET updated_at = ${HUGE};
    UPDATE sessions SET expires_at = ${HUGE}`,
  );
  const subjects = ['agent:bot', 'credential:prod/key', 'policy:bot-0', 'session:', 'targets:prod/key'];
  const problems = (await problemsOf(service)).sort();
  assert.deepEqual(
    problems.map((problem) => /^.+?:.*?altered$/.test(problem)),
    subjects.map(() => true),
    problems.join(),
  );
  for (const [index, subject] of subjects.entries()) assert.equal(problems[index]?.startsWith(subject), true, subject);
  for (const client of [service.admin, service.as(service.token)])
    assert.notEqual((await client.get(VALUE)).status, 200);
  assert.notEqual((await service.admin.get('/api/v1/targets/prod/key')).status, 200);
  assert.equal((await service.admin.get('/api/v1/credentials/prod/other')).body.data.value, 'two');
  assert.equal((await service.admin.get('/api/v1/credentials')).body.data.length, 2);
  await executeSql(service.dataDir, `UPDATE audit_entries SET bytes_in = ${HUGE} WHERE seq = 3`);
  const { valid, break_at_entry } = (await service.admin.get('/api/v1/audit/verify')).body.data;
  assert.deepEqual([valid, break_at_entry], [false, 3]);
});

test('a scan ends although the keys of rows are not UTF-8', async (t) => {
  const text = `CAST(x'ff' AS TEXT)`;
  const service = await altered(
    t,
    `UPDATE policies SET name = ${text};
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
    INSERT INTO policies (name, principal, resources, actions, max_ttl_seconds, created_at, mac)
      SELECT ${text} || i || ${text}, 'agent:bot', '[]', '[]', 60, 1, 'mac' FROM n`,
  );
  const problems = await problemsOf(service);
  assert.ok(problems.includes('policy:\ufffd: altered'), problems.slice(0, 5).join());
});

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
