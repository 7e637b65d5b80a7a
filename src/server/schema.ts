/** The schema of a shared database, for whoever owns it: what was asked for, done, and said. Needs no root key and no service. */

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { StartupError, UsageError } from '../platform/errors.ts';
import { describeAddress } from '../store/postgres/address.ts';
import { printSchema, updateSchema } from '../store/postgres/schema-admin.ts';
import { StoreError } from '../store/store.ts';
import { chooseDatabase, type DatabaseChoice } from './database-option.ts';
import { CALLED_AS } from './errors.ts';

interface SchemaRequest {
  /** Null only where the statements are to be printed. */
  readonly database: DatabaseChoice | null;
  /** The name of the service's role, or null. */
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

type Environment = Readonly<Record<string, string | undefined>>;

/** Null where `--help` was asked for. @throws UsageError */
export function readSchemaRequest(args: readonly string[], environment: Environment): SchemaRequest | null {
  const values = parse(args);
  if (values.help === true) return null;
  const kept = Object.keys(OPTIONS).find(
    (name) => environment[`npm_config_${name.replaceAll('-', '_')}`] !== undefined,
  );
  if (kept !== undefined) {
    throw new UsageError(`npm kept --${kept} for itself: put -- before the flags, as in npm run schema -- --${kept} …`);
  }
  const empty = Object.entries(values).find(([, value]) => value === '');
  if (empty !== undefined) throw new UsageError(`--${empty[0]} needs a value.`);
  const file = values['database-file'] ?? environment['LEASEHOLD_DATABASE_FILE'];
  const database = chooseDatabase(
    {
      flag: values.database,
      environment: environment['LEASEHOLD_DATABASE_URL'] ?? environment['LEASEHOLD_DATABASE'],
      file: file === undefined ? null : resolve(environment['INIT_CWD'] ?? process.cwd(), file),
    },
    true,
  );
  const printsOnly = values.print === true;
  if (database === null && !printsOnly) throw new UsageError('Give --database URL or --database-file FILE.');
  return { database, grantee: values.grant ?? null, printsOnly };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values;
  } catch (error) {
    const [first = ''] = (error instanceof Error ? error.message : '').split(/\.?\s*\n|\. /);
    throw new UsageError(`${first}. ${CALLED_AS.schema} --help lists the flags.`);
  }
}

/** Resolves to what to print. @throws StartupError */
export async function runSchemaRequest(request: SchemaRequest): Promise<string> {
  try {
    return await run(request);
  } catch (error) {
    if (error instanceof StoreError) throw new StartupError(error.message, { cause: error });
    throw error;
  }
}

async function run({ database, grantee, printsOnly }: SchemaRequest): Promise<string> {
  if (printsOnly || database === null) return printSchema(database?.address ?? null, grantee);
  const { number, done } = await updateSchema(database.address, grantee);
  const now =
    done.length === 0 ? 'nothing was left to do' : `${done.join(', ')} ${done.length === 1 ? 'was' : 'were'} done`;
  return [
    ...(database.showsPassword
      ? [
          "WARNING  The database's password stands on the command line, for everybody on this machine: use --database-file.",
        ]
      : []),
    `${describeAddress(database.address)}, has schema ${number}: ${now}.`,
    ...(grantee === null
      ? ['Next: let a role that owns nothing use it, with --grant ROLE; then start the nodes as that role.']
      : [
          `The role ${grantee} may do with it what a node needs, and nothing else.`,
          `Next: start the nodes as ${grantee}: ${CALLED_AS.server} --database-file FILE --no-migrate …`,
        ]),
  ].join('\n');
}
