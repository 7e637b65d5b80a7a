/** `npm run schema`: options, execution and output. Needs neither the root key nor a running service. */

import { UsageError } from '../platform/errors.ts';
import { describeAddress } from '../store/postgres/address.ts';
import { printSchema, updateSchema } from '../store/postgres/schema-admin.ts';
import { CALLED_AS } from './command-lines.ts';
import { chooseDatabase, type DatabaseChoice, PASSWORD_ON_COMMAND_LINE } from './database-option.ts';
import { type Environment, filePath, parseFlags, rejectFlagsKeptByNpm } from './flags.ts';

interface SchemaRequest {
  /** Null only with `--print`. */
  readonly database: DatabaseChoice | null;
  /** The role of the nodes, or null. */
  readonly grantee: string | null;
  readonly printsOnly: boolean;
}

const OPTIONS = {
  database: { type: 'string' },
  'database-file': { type: 'string' },
  grant: { type: 'string' },
  print: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Null for `--help`. @throws UsageError */
export function readSchemaRequest(args: readonly string[], environment: Environment): SchemaRequest | null {
  const values = parseFlags(args, OPTIONS, CALLED_AS.schema);
  if (values.help === true) return null;
  rejectFlagsKeptByNpm(Object.keys(OPTIONS), environment, 'npm run schema');
  const database = chooseDatabase({
    flag: values.database,
    file: filePath(values['database-file'] ?? environment['LEASEHOLD_DATABASE_FILE'], environment),
    environment,
  });
  const printsOnly = values.print === true;
  if (database === null && !printsOnly) throw new UsageError('Give --database URL or --database-file FILE.');
  return { database, grantee: values.grant ?? null, printsOnly };
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
          `Next: start the nodes as ${grantee}: ${CALLED_AS.server} --database-file FILE --no-migrate …`,
        ]),
  ].join('\n');
}
