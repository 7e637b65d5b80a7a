/** A database as docs/cluster.md describes it: owned by one role, used by another that owns nothing. */
import { randomBytes } from 'node:crypto';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { updateSchema } from '../../src/store/postgres/migrate.ts';
import { REQUIRED_PRIVILEGES } from '../../src/store/postgres/privileges.ts';
import { newDatabase } from '../kit/database.ts';
import type { Scope } from '../kit/directory.ts';
import { querySql } from '../kit/postmaster.ts';

export interface OwnedDatabase {
  /** The URLs of the superuser, of the owner of the database, and of a role that may connect to it. */
  readonly superuser: string;
  readonly owner: string;
  readonly service: string;
  /** The names of the last two. */
  readonly ownerRole: string;
  readonly serviceRole: string;
}

/** The privileges of the service's role, one on one table each. */
export const GRANTS = Object.entries(REQUIRED_PRIVILEGES).flatMap(([table, rights]) =>
  rights.split(', ').map((right) => ({ table, right })),
);

/** Creates a database without a schema. The names contain characters that need quotes. */
export async function newOwnedDatabase(scope: Scope): Promise<OwnedDatabase> {
  const superuser = await newDatabase(scope);
  const suffix = randomBytes(6).toString('hex');
  const [ownerRole, serviceRole] = [`Owner "of" it ${suffix}`, `Service's ${suffix}`];
  const database = new URL(superuser).pathname.slice(1);
  for (const role of [ownerRole, serviceRole]) {
    await querySql(superuser, `CREATE ROLE ${quote(role)} LOGIN PASSWORD '${suffix}'`);
  }
  scope.after(async () => {
    const server = Object.assign(new URL(superuser), { pathname: '/postgres' }).href;
    await querySql(server, `DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
    for (const role of [ownerRole, serviceRole]) await querySql(server, `DROP ROLE IF EXISTS ${quote(role)}`);
  });
  await querySql(superuser, `ALTER DATABASE ${database} OWNER TO ${quote(ownerRole)}`);
  await querySql(superuser, `REVOKE ALL ON DATABASE ${database} FROM PUBLIC`);
  await querySql(superuser, `GRANT CONNECT ON DATABASE ${database} TO ${quote(serviceRole)}`);
  return {
    superuser,
    owner: urlOf(superuser, ownerRole, suffix),
    service: urlOf(superuser, serviceRole, suffix),
    ownerRole,
    serviceRole,
  };
}

/** Creates a database with the schema, and with the grants that the service's role needs. */
export async function newGrantedDatabase(scope: Scope): Promise<OwnedDatabase> {
  const database = await newOwnedDatabase(scope);
  await updateSchema(parseAddress(database.owner), database.serviceRole);
  return database;
}

function urlOf(superuser: string, role: string, password: string): string {
  const url = new URL(superuser);
  url.username = encodeURIComponent(role);
  url.password = password;
  return url.href;
}

export function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
