// The command that creates the schema of a shared database: for its owner; its effects, its output and its errors.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../kit/directory.ts';
import { querySql } from '../kit/postmaster.ts';
import { runCommand } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { useEverything } from './full-vault.ts';
import { newGrantedDatabase, newOwnedDatabase, quote } from './owner-roles.ts';
import { MIGRATIONS, migrationsOf, NEWEST, open, shapeOf } from './schemas.ts';

test('the command creates the schema, grants a role its privileges, and prints the next step', async (t) => {
  const { owner, service, serviceRole } = await newOwnedDatabase(t);
  const file = join(temporaryDirectory(t), 'owner.url');
  writeFileSync(file, `${owner}\n`);
  const first = await runCommand(['schema', '--database-file', file, '--grant', serviceRole]);
  assert.equal(first.code, 0, first.output);
  assert.match(
    first.output,
    /^PostgreSQL at 127\.0\.0\.1:\d+, database test_\w+, has schema \d+: 0001_vault\b.* done\.$/m,
  );
  assert.ok(first.output.includes(`Next: start the nodes as ${serviceRole}:`), first.output);
  const again = await runCommand(['schema', '--database-file', file]);
  assert.match(again.output, /no change was needed\.\nNext: grant a role that owns nothing access with --grant ROLE/);
  const node = await startTestService(t, ['--database', service, '--no-migrate']);
  await useEverything(node);
  await node.stop();
});

test('the printed statements are those that the command executes', async (t) => {
  const [byCommand, byHand] = [await newGrantedDatabase(t), await newOwnedDatabase(t)];
  const { code, output } = await runCommand(['schema', '--print', '--grant', byHand.serviceRole]);
  assert.equal(code, 0, output);
  await querySql(byHand.owner, output);
  assert.deepEqual(await shapeOf(byHand.owner), await shapeOf(byCommand.owner));
  await open(byHand.service, false);
  const left = await runCommand(['schema', '--print', '--database', byHand.owner]);
  assert.deepEqual(left, { code: 0, output: '\n' });
});

test('a usage error or a missing privilege is reported in one line and changes nothing', async (t) => {
  const { owner, service, ownerRole, serviceRole } = await newOwnedDatabase(t);
  const rows: readonly [flags: readonly string[], code: number, said: RegExp][] = [
    [[], 1, /^leasehold: give --database URL or --database-file FILE\.\n$/],
    [['--database', 'mysql://a@b/c'], 1, /^leasehold: --database: must be postgres:.*\n$/],
    [
      ['--database', service],
      1,
      /^leasehold: the database has no Leasehold schema,.*run leasehold schema with a role that may.*\n$/,
    ],
    [
      ['--database', owner, '--grant', 'x'.repeat(64)],
      1,
      /^leasehold: the role to grant to must have a name of 1 to 63 bytes\.\n$/,
    ],
    [
      ['--database', owner, '--grant', 'nobody"; --'],
      1,
      /^leasehold: PostgreSQL: role "nobody"; --" does not exist \(42704\)\.\n$/,
    ],
    [['--database', owner, '--grant', ownerRole], 1, /^leasehold: the role .* owns the schema: .*\n$/],
    [
      ['--database', service, '--grant', serviceRole],
      1,
      /^leasehold: the role .* lacks USAGE on schema leasehold, SELECT on/,
    ],
  ];
  for (const [flags, code, said] of rows) {
    const ended = await runCommand(['schema', ...flags]);
    assert.equal(ended.code, code, ended.output);
    assert.match(ended.output, said);
    assert.equal(ended.output.trimEnd().split('\n').length, 1, ended.output);
  }
  await open(owner, false);
});

test('without the privilege to create the schema, the start names the command that creates it', async (t) => {
  const { service } = await newOwnedDatabase(t);
  await assert.rejects(open(service), {
    message:
      'the database has no Leasehold schema, or an old one, and this role may not create it: run leasehold schema with a role that may; see docs/cluster.md',
  });
});

test('an old schema is rejected when the role may not migrate it, and nothing changes', async (t) => {
  const { owner, service } = await newGrantedDatabase(t);
  await querySql(owner, `DELETE FROM leasehold.migrations WHERE number = ${NEWEST}`);
  await assert.rejects(open(service), /no Leasehold schema, or an old one, and this role may not create it/);
  assert.deepEqual(await migrationsOf(owner), MIGRATIONS.slice(0, -1));
});

test('a role that owns an empty schema that another role created can create the tables', async (t) => {
  const { superuser, owner, ownerRole } = await newOwnedDatabase(t);
  await querySql(superuser, `ALTER DATABASE ${new URL(superuser).pathname.slice(1)} OWNER TO CURRENT_USER`);
  await querySql(superuser, `GRANT CONNECT ON DATABASE ${new URL(superuser).pathname.slice(1)} TO ${quote(ownerRole)}`);
  await querySql(superuser, `CREATE SCHEMA leasehold AUTHORIZATION ${quote(ownerRole)}`);
  await open(owner);
  assert.deepEqual(await migrationsOf(owner), MIGRATIONS);
});
