// The role of the service: it owns nothing and has exactly the privileges that a node needs; errors name missing ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { updateSchema } from '../../src/store/postgres/migrate.ts';
import { REQUIRED_PRIVILEGES } from '../../src/store/postgres/privileges.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { querySql } from '../kit/postmaster.ts';
import { startTestService } from '../kit/service.ts';
import { useBesides, useEverything } from './full-vault.ts';
import { GRANTS, newGrantedDatabase, quote } from './owner-roles.ts';

test('a role that owns nothing suffices for everything a node does, also after a restart', async (t) => {
  const { service } = await newGrantedDatabase(t);
  const first = await startTestService(t, ['--database', service, '--no-migrate']);
  await useEverything(first);
  await first.stop();
  const again = await startTestService(t, ['--database', service], first.dataDir);
  assert.equal((await again.admin.get('/api/v1/audit/verify?state=true')).body.data.valid, true);
  const store = await PostgresStore.open(parseAddress(service), false);
  await useBesides(store, service);
  await store.close();
  await again.stop();
});

test('the role may only append to the log and may not change the schema', async (t) => {
  const { superuser, service, ownerRole } = await newGrantedDatabase(t);
  const node = await startTestService(t, ['--database', service]);
  await node.admin.post('/api/v1/credentials', { path: 'a', value: 'one' });
  await querySql(superuser, 'CREATE TABLE public.others (id integer)');
  await querySql(superuser, 'CREATE SCHEMA payroll CREATE TABLE salaries (id integer)');
  for (const statement of [
    `UPDATE leasehold.audit_entries SET reason = 'nothing happened' WHERE seq = 1`,
    'DELETE FROM leasehold.audit_entries WHERE seq = 1',
    'TRUNCATE leasehold.audit_entries',
    'SELECT 1 FROM leasehold.audit_entries FOR UPDATE',
    'DROP TABLE leasehold.audit_entries',
    'ALTER TABLE leasehold.audit_entries ADD COLUMN note text',
    'CREATE RULE quiet AS ON INSERT TO leasehold.audit_entries DO INSTEAD NOTHING',
    'CREATE INDEX ON leasehold.audit_entries (result)',
    'ALTER TABLE leasehold.audit_entries DISABLE TRIGGER ALL',
    'DELETE FROM leasehold.audit_head',
    'TRUNCATE leasehold.audit_head',
    'DELETE FROM leasehold.vault',
    'UPDATE leasehold.agents SET public_key = public_key',
    'UPDATE leasehold.policies SET actions = actions',
    `INSERT INTO leasehold.migrations (number, name) VALUES (99, 'x')`,
    'DELETE FROM leasehold.migrations',
    'CREATE TABLE leasehold.more (id integer)',
    'CREATE TABLE public.more (id integer)',
    'CREATE TEMPORARY TABLE more (id integer)',
    'CREATE SCHEMA more',
    'DROP VIEW leasehold.effective_leases',
    'DROP SCHEMA leasehold CASCADE',
    `SET ROLE ${quote(ownerRole)}`,
    'SELECT * FROM public.others',
    'SELECT * FROM payroll.salaries',
    'SELECT rolpassword FROM pg_authid',
    `SELECT pg_read_file('postgresql.conf')`,
    `COPY leasehold.sessions TO PROGRAM 'cat'`,
  ]) {
    // "Must be owner" and "permission denied" have the same code.
    await assert.rejects(querySql(service, statement), { code: '42501' }, statement);
  }
  await node.stop();
});

test('a start without some privileges names exactly those', async (t) => {
  const { owner, service, serviceRole } = await newGrantedDatabase(t);
  const role = quote(serviceRole);
  const assertNamed = async (missing: string): Promise<void> => {
    const message = `the role ${serviceRole} lacks ${missing}: the role that owns the schema grants it with leasehold schema --grant ${serviceRole}`;
    await assert.rejects(PostgresStore.open(parseAddress(service)), { name: 'StoreError', message });
  };
  await querySql(owner, `REVOKE USAGE ON SCHEMA leasehold FROM ${role}`);
  await assertNamed('USAGE on schema leasehold');
  await querySql(owner, `GRANT USAGE ON SCHEMA leasehold TO ${role}`);
  await querySql(owner, `REVOKE DELETE ON leasehold.sessions FROM ${role}`);
  await assertNamed('DELETE on leasehold.sessions');
  await querySql(owner, `REVOKE ALL ON ALL TABLES IN SCHEMA leasehold FROM ${role}`);
  await assertNamed(GRANTS.map(({ table, right }) => `${right} on leasehold.${table}`).join(', '));
  await updateSchema(parseAddress(owner), serviceRole);
  await (await PostgresStore.open(parseAddress(service))).close();
});

test('a start on a schema without one of its tables reports it', async (t) => {
  const { owner, service } = await newGrantedDatabase(t);
  await querySql(owner, 'DROP TABLE leasehold.idempotency_records');
  await assert.rejects(PostgresStore.open(parseAddress(service)), /the database lacks leasehold.idempotency_records,/);
});

test('granting revokes privileges that the role does not need', async (t) => {
  const { owner, service, serviceRole } = await newGrantedDatabase(t);
  await querySql(owner, `GRANT ALL ON ALL TABLES IN SCHEMA leasehold TO ${quote(serviceRole)}`);
  await querySql(owner, `GRANT CREATE ON SCHEMA leasehold TO ${quote(serviceRole)}`);
  await updateSchema(parseAddress(owner), serviceRole);
  const rows = await querySql(
    owner,
    `SELECT table_name, string_agg(privilege_type, ', ' ORDER BY privilege_type) AS rights
     FROM information_schema.role_table_grants WHERE grantee = '${serviceRole.replaceAll("'", "''")}' GROUP BY table_name`,
  );
  const granted = Object.fromEntries(rows.map((row) => [row['table_name'], row['rights']]));
  const sorted = Object.entries(REQUIRED_PRIVILEGES).map(([table, rights]) => [
    table,
    rights.split(', ').sort().join(', '),
  ]);
  assert.deepEqual(granted, Object.fromEntries(sorted));
  await assert.rejects(querySql(service, 'CREATE TABLE leasehold.more (id integer)'), { code: '42501' });
});
