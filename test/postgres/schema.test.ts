// The schema of a shared database: made and changed by whoever may, by one at a time, whole or not at all.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readMigrations } from '../../src/store/migrations.ts';
import { parseAddress } from '../../src/store/postgres/address.ts';
import { updateSchema } from '../../src/store/postgres/owning.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { ROOT } from '../house/source.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { querySql } from '../kit/postmaster.ts';
import { runCommand } from '../kit/process.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';
import { useEverything } from './everything.ts';
import { newGrantedDatabase, newOwnedDatabase, quote } from './owners.ts';

const SCHEMA = 'src/cli/schema.ts';
const MIGRATIONS = readMigrations('postgres').map(({ name }) => name);
const NEWEST = MIGRATIONS.length;

/** Opens the store and closes it again. */
async function open(url: string, mayMigrate = true): Promise<void> {
  const store = await PostgresStore.open(parseAddress(url), mayMigrate);
  await store.close();
}

const migrationsOf = async (url: string) =>
  (await querySql(url, 'SELECT name FROM leasehold.migrations ORDER BY number')).map((row) => row['name']);

/** Every column, index and view, as text. */
async function shapeOf(url: string): Promise<unknown> {
  const [row] = await querySql(
    url,
    `SELECT (SELECT string_agg(concat_ws(' ', table_name, column_name, data_type, is_nullable, collation_name), E'\\n'
         ORDER BY table_name, ordinal_position) FROM information_schema.columns WHERE table_schema = 'leasehold') AS columns,
       (SELECT string_agg(indexdef, E'\\n' ORDER BY indexname) FROM pg_indexes WHERE schemaname = 'leasehold') AS indexes,
       (SELECT string_agg(pg_get_viewdef(oid), E'\\n') FROM pg_class
         WHERE relkind = 'v' AND relnamespace = 'leasehold'::regnamespace) AS views`,
  );
  return row;
}

test('the command makes the schema, lets a role use it, and says what comes next', async (t) => {
  const { owner, service, serviceRole } = await newOwnedDatabase(t);
  const file = join(temporaryFolder(t), 'owner.url');
  writeFileSync(file, `${owner}\n`);
  const first = await runCommand(SCHEMA, ['--database-file', file, '--grant', serviceRole]);
  assert.equal(first.code, 0, first.output);
  assert.match(
    first.output,
    /^PostgreSQL at 127\.0\.0\.1:\d+, database test_\w+, has schema \d+: 0001_vault\b.* done\.$/m,
  );
  assert.ok(first.output.includes(`Next: start the nodes as ${serviceRole}:`), first.output);
  const again = await runCommand(SCHEMA, ['--database-file', file]);
  assert.match(again.output, /nothing was left to do\.\nNext: let a role that owns nothing use it, with --grant ROLE/);
  const node = await startTestService(t, ['--database', service, '--no-migrate']);
  await useEverything(node);
  await node.stop();
});

test('what the command prints is what it does', async (t) => {
  const [byCommand, byHand] = [await newGrantedDatabase(t), await newOwnedDatabase(t)];
  const { code, output } = await runCommand(SCHEMA, ['--print', '--grant', byHand.serviceRole]);
  assert.equal(code, 0, output);
  await querySql(byHand.owner, output);
  assert.deepEqual(await shapeOf(byHand.owner), await shapeOf(byCommand.owner));
  await open(byHand.service, false);
  const left = await runCommand(SCHEMA, ['--print', '--database', byHand.owner]);
  assert.deepEqual(left, { code: 0, output: '\n' });
});

test('a command that was called wrongly, or may not, says why in one line and changes nothing', async (t) => {
  const { owner, service, ownerRole, serviceRole } = await newOwnedDatabase(t);
  const rows: readonly [flags: readonly string[], code: number, said: RegExp][] = [
    [[], 2, /^leasehold: Give --database URL or --database-file FILE\.\n$/],
    [['--database'], 2, /^leasehold: .*--database.* npm run schema -- --help lists the flags\.\n$/],
    [['--database', owner, '--grant', ''], 2, /^leasehold: --grant needs a value\.\n$/],
    [['--database', owner, '--drop'], 2, /^leasehold: Unknown option '--drop'/],
    [['--database', 'mysql://a@b/c'], 2, /^leasehold: --database: must be postgres:.*\n$/],
    [
      ['--database', service],
      1,
      /^leasehold: the database has no schema of Leasehold,.*run npm run schema with the role that may.*\n$/,
    ],
    [
      ['--database', owner, '--grant', 'x'.repeat(64)],
      1,
      /^leasehold: the role to grant to must have a name of 1 to 63 bytes\n$/,
    ],
    [
      ['--database', owner, '--grant', 'nobody"; --'],
      1,
      /^leasehold: PostgreSQL: role "nobody"; --" does not exist \(42704\)\n$/,
    ],
    [['--database', owner, '--grant', ownerRole], 1, /^leasehold: the role .* owns the schema: .*\n$/],
    [
      ['--database', service, '--grant', serviceRole],
      1,
      /^leasehold: the role .* lacks USAGE on schema leasehold, SELECT on/,
    ],
  ];
  for (const [flags, code, said] of rows) {
    const ended = await runCommand(SCHEMA, flags);
    assert.equal(ended.code, code, ended.output);
    assert.match(ended.output, said);
    assert.equal(ended.output.trimEnd().split('\n').length, 1, ended.output);
  }
  await open(owner, false);
});

test('a role that may not make the schema is told who can', async (t) => {
  const { service } = await newOwnedDatabase(t);
  await assert.rejects(open(service), {
    message:
      'the database has no schema of Leasehold, or an old one, and this role may not make it: run npm run schema with the role that may; docs/operations.md tells how',
  });
});

test('a role that may use the schema is told so where it is old, and changes nothing', async (t) => {
  const { owner, service } = await newGrantedDatabase(t);
  await querySql(owner, `DELETE FROM leasehold.migrations WHERE number = ${NEWEST}`);
  await assert.rejects(open(service), /no schema of Leasehold, or an old one, and this role may not make it/);
  assert.deepEqual(await migrationsOf(owner), MIGRATIONS.slice(0, -1));
});

test('an owner of an empty schema that somebody else made for it can fill it', async (t) => {
  const { superuser, owner, ownerRole } = await newOwnedDatabase(t);
  await querySql(superuser, `ALTER DATABASE ${new URL(superuser).pathname.slice(1)} OWNER TO CURRENT_USER`);
  await querySql(superuser, `GRANT CONNECT ON DATABASE ${new URL(superuser).pathname.slice(1)} TO ${quote(ownerRole)}`);
  await querySql(superuser, `CREATE SCHEMA leasehold AUTHORIZATION ${quote(ownerRole)}`);
  await open(owner);
  assert.deepEqual(await migrationsOf(owner), MIGRATIONS);
});

test('--no-migrate refuses an empty database and leaves it empty, and works on one that is up to date', async (t) => {
  const url = await newDatabase(t);
  await assert.rejects(open(url, false), {
    message: `the database has no schema of Leasehold, this Leasehold needs ${NEWEST}, and --no-migrate is given: run npm run schema with the role that owns it`,
  });
  assert.equal((await querySql(url, `SELECT 1 FROM pg_namespace WHERE nspname = 'leasehold'`)).length, 0);
  await open(url);
  await open(url, false);
});

test('ten nodes that find an empty database at once all start, on one schema', async (t) => {
  const url = await newDatabase(t);
  await Promise.all(Array.from({ length: 10 }, () => open(url)));
  assert.deepEqual(await migrationsOf(url), MIGRATIONS);
  const alone = await newDatabase(t);
  await open(alone);
  assert.deepEqual(await shapeOf(url), await shapeOf(alone));
});

test('a newer schema that older nodes can work with is worked with', async (t) => {
  const { owner, service } = await newGrantedDatabase(t);
  await querySql(
    owner,
    `INSERT INTO leasehold.migrations (number, name, needs) VALUES (${NEWEST + 1}, 'newer', ${NEWEST})`,
  );
  await querySql(owner, 'ALTER TABLE leasehold.agents ADD COLUMN team text');
  const node = await startTestService(t, ['--database', service]);
  await useEverything(node);
  await node.stop();
});

test('a newer schema that takes a newer node is refused, and what it needs is said', async (t) => {
  const { owner, service } = await newGrantedDatabase(t);
  for (const number of [1, 2]) {
    const values = `${NEWEST + number}, 'newer', ${NEWEST + 1}`;
    await querySql(owner, `INSERT INTO leasehold.migrations (number, name, needs) VALUES (${values})`);
  }
  const message = `the database has schema ${NEWEST + 2}, which a Leasehold must know up to ${NEWEST + 1}, and this one knows up to ${NEWEST}: start a newer Leasehold`;
  for (const mayMigrate of [true, false]) await assert.rejects(open(service, mayMigrate), { message });
});

/** Whether a migration waits for what another transaction holds. */
async function isHeldUp(url: string): Promise<boolean> {
  const rows = await querySql(
    url,
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%CREATE TABLE%'`,
  );
  return rows.length > 0;
}

test('a node that is killed within a migration leaves the old schema or the new one, and the next start finishes', async (t) => {
  const url = await newDatabase(t);
  await querySql(url, 'CREATE SCHEMA leasehold');
  // In the middle of it: a table of the same name is being made.
  const holder = querySql(url, 'BEGIN; CREATE TABLE leasehold.credentials (id integer); SELECT pg_sleep(2); ROLLBACK;');
  const child = spawn(process.execPath, ['--disable-proto=throw', join(ROOT, SCHEMA), '--database', url], {
    stdio: 'ignore',
  });
  const ended = once(child, 'close');
  await until(
    () => isHeldUp(url),
    10_000,
    () => 'no migration was held up',
  );
  child.kill('SIGKILL');
  await ended;
  // At once, while what was sent still waits.
  const [[seen]] = await Promise.all([
    querySql(url, `SELECT to_regclass('leasehold.vault') IS NULL AS is_old`),
    open(url),
  ]);
  assert.equal(seen?.['is_old'], true, 'nothing of it is seen before its end');
  await holder;
  assert.deepEqual(await migrationsOf(url), MIGRATIONS);
  const alone = await newDatabase(t);
  await open(alone);
  assert.deepEqual(await shapeOf(url), await shapeOf(alone));
});

test('a migration that waits for somebody’s long transaction gives up, changes nothing, and says so', async (t) => {
  const url = await newDatabase(t);
  await querySql(url, 'CREATE SCHEMA leasehold');
  const table = `relname FROM pg_class WHERE relnamespace = 'leasehold'::regnamespace`;
  const holding = 'BEGIN; CREATE TABLE leasehold.credentials (id integer); SELECT pg_sleep(60);';
  const held = assert.rejects(querySql(url, holding));
  const findHolder = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`;
  const isHolding = async () => (await querySql(url, `SELECT 1 ${findHolder}`)).length > 0;
  await until(isHolding, 10_000, () => 'nobody holds it');
  await assert.rejects(updateSchema(parseAddress(url), null), /canceling statement due to lock timeout \(55P03\)/);
  await querySql(url, `SELECT pg_terminate_backend(pid) ${findHolder}`);
  await held;
  assert.equal((await querySql(url, `SELECT ${table}`)).length, 0);
});
