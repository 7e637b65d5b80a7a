// Migrations of a shared database: one at a time, and atomic; running nodes continue while the schema gains columns.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { RESPONSE_TIMEOUT_MS } from '../../src/store/postgres/driver.ts';
import { MIGRATION_LOCK, updateSchema } from '../../src/store/postgres/migrate.ts';
import { REQUIRED_PRIVILEGES } from '../../src/store/postgres/privileges.ts';
import { ROOT } from '../conventions/source.ts';
import { newDatabase } from '../kit/database.ts';
import { querySql } from '../kit/postmaster.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';
import { useEverything } from './full-vault.ts';
import { newGrantedDatabase } from './owner-roles.ts';
import { MIGRATIONS, migrationsOf, NEWEST, open, shapeOf } from './schemas.ts';

test('--no-migrate rejects an empty database without changing it, and accepts one that is up to date', async (t) => {
  const url = await newDatabase(t);
  await assert.rejects(open(url, false), {
    message: `the database has no Leasehold schema, this Leasehold needs ${NEWEST}, and --no-migrate is given: run leasehold schema with the role that owns it`,
  });
  assert.equal((await querySql(url, `SELECT 1 FROM pg_namespace WHERE nspname = 'leasehold'`)).length, 0);
  await open(url);
  await open(url, false);
});

test('ten nodes that start concurrently on an empty database all start, on one schema', async (t) => {
  const url = await newDatabase(t);
  await Promise.all(Array.from({ length: 10 }, () => open(url)));
  assert.deepEqual(await migrationsOf(url), MIGRATIONS);
  const alone = await newDatabase(t);
  await open(alone);
  assert.deepEqual(await shapeOf(url), await shapeOf(alone));
});

/** Locks in this database only, because other tests hold locks on the same server. */
const IS_LOCKED = `SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database
  WHERE locktype = 'advisory' AND datname = current_database()`;

test('a start waits until another node’s migration has ended, longer than other time-outs', async (t) => {
  const url = await newDatabase(t);
  const seconds = RESPONSE_TIMEOUT_MS.reading / 1000 + 1;
  const held = querySql(url, `BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}, 0), pg_sleep(${seconds}); COMMIT`);
  const isHeld = async () => (await querySql(url, IS_LOCKED)).length > 0;
  await until(isHeld, 120_000, () => 'no transaction holds the table');
  await open(url);
  await held;
  assert.deepEqual(await migrationsOf(url), MIGRATIONS);
});

test('a running node continues while the schema gains columns', async (t) => {
  const { owner, service } = await newGrantedDatabase(t);
  const node = await startTestService(t, ['--database', service]);
  await useEverything(node);
  for (const table of Object.keys(REQUIRED_PRIVILEGES).filter((name) => name !== 'effective_leases')) {
    await querySql(owner, `ALTER TABLE leasehold.${table} ADD COLUMN newer text`);
  }
  // Each statement that was prepared on the table as it was may fail once, and on a busy machine the node uses more
  // of its connections.
  const isWell = () =>
    useEverything(node)
      .then(() => useEverything(node))
      .then(
        () => true,
        () => false,
      );
  await until(isWell, 120_000, () => 'it did not recover');
  await node.stop();
});

test('a schema of a newer version is rejected, and the error names it', async (t) => {
  const { owner, service } = await newGrantedDatabase(t);
  await querySql(owner, `INSERT INTO leasehold.migrations (number, name) VALUES (${NEWEST + 1}, 'newer')`);
  const message = `the database has schema ${NEWEST + 1}, this Leasehold knows up to ${NEWEST}: start the Leasehold that wrote it`;
  for (const mayMigrate of [true, false]) await assert.rejects(open(service, mayMigrate), { message });
});

/** A transaction of this file that holds a table and sleeps. */
const HOLDER = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`;
const isHolding = async (url: string) => (await querySql(url, `SELECT 1 ${HOLDER}`)).length > 0;

/** Whether a migration waits for what another transaction holds. */
async function isHeldUp(url: string): Promise<boolean> {
  const rows = await querySql(
    url,
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%CREATE TABLE%'`,
  );
  return rows.length > 0;
}

test('a node that is killed during a migration leaves the old or the new schema, and the next start completes it', async (t) => {
  const url = await newDatabase(t);
  await querySql(url, 'CREATE SCHEMA leasehold');
  // The migration is stopped midway, because a table of the same name is being created.
  const holding = 'BEGIN; CREATE TABLE leasehold.credentials (id integer); SELECT pg_sleep(600);';
  const holder = assert.rejects(querySql(url, holding));
  await until(
    () => isHolding(url),
    120_000,
    () => 'no transaction holds the table',
  );
  const child = spawn(
    process.execPath,
    ['--disable-proto=delete', join(ROOT, 'src/bin/leasehold.ts'), 'schema', '--database', url],
    {
      stdio: 'ignore',
    },
  );
  const ended = once(child, 'close');
  await until(
    () => isHeldUp(url),
    120_000,
    () => 'no migration was held up',
  );
  child.kill('SIGKILL');
  await ended;
  // Reads while the statement of the killed node still waits.
  const [seen] = await querySql(url, `SELECT to_regclass('leasehold.vault') IS NULL AS is_old`);
  assert.equal(seen?.['is_old'], true, 'nothing of it is seen before its end');
  await Promise.all([open(url), querySql(url, `SELECT pg_terminate_backend(pid) ${HOLDER}`), holder]);
  assert.deepEqual(await migrationsOf(url), MIGRATIONS);
  const alone = await newDatabase(t);
  await open(alone);
  assert.deepEqual(await shapeOf(url), await shapeOf(alone));
});

test('a migration that waits for another client’s long transaction times out, changes nothing, and reports it', async (t) => {
  const url = await newDatabase(t);
  await querySql(url, 'CREATE SCHEMA leasehold');
  const table = `relname FROM pg_class WHERE relnamespace = 'leasehold'::regnamespace`;
  const holding = 'BEGIN; CREATE TABLE leasehold.credentials (id integer); SELECT pg_sleep(600);';
  const held = assert.rejects(querySql(url, holding));
  await until(
    () => isHolding(url),
    120_000,
    () => 'no transaction holds the table',
  );
  await assert.rejects(updateSchema(parseAddress(url), null), /canceling statement due to lock timeout \(55P03\)/);
  await querySql(url, `SELECT pg_terminate_backend(pid) ${HOLDER}`);
  await held;
  assert.equal((await querySql(url, `SELECT ${table}`)).length, 0);
});
