/** Runs `leasehold schema` and prints its output. Needs neither the root key nor a running server. */
import { describeAddress } from '../store/postgres/database-url.ts';
import { printSchema, updateSchema } from '../store/postgres/migrate.ts';
import { SERVER_COMMAND } from './flag-table.ts';
import { type DatabaseChoice, PASSWORD_ON_COMMAND_LINE } from './flag-values.ts';

interface SchemaRequest {
  /** Null only with `--print`. */
  readonly database: DatabaseChoice | null;
  readonly grantee: string | null;
  readonly printsOnly: boolean;
}

/** Resolves to the output. @throws StartupError, StoreError */
export async function runSchemaRequest({ database, grantee, printsOnly }: SchemaRequest): Promise<string> {
  if (printsOnly || database === null) return printSchema(database?.address ?? null, grantee);
  const { number, done } = await updateSchema(database.address, grantee);
  const now =
    done.length === 0 ? 'no change was needed' : `${done.join(', ')} ${done.length === 1 ? 'was' : 'were'} done`;
  return [
    ...(database.showsPassword ? [`WARNING  ${PASSWORD_ON_COMMAND_LINE}`] : []),
    `${describeAddress(database.address)}, has schema ${number}: ${now}.`,
    ...(grantee === null
      ? ['Next: grant a role that owns nothing access with --grant ROLE, then start the nodes as that role.']
      : [
          `The role ${grantee} has the privileges that a node needs, and no others.`,
          `Next: start the nodes as ${grantee}: ${SERVER_COMMAND} --database-file FILE --no-migrate …`,
        ]),
  ].join('\n');
}
