/** `npm run schema -- --database URL`: makes or brings up to date the schema of a shared database, with the role that owns it. */
import { StartupError, UsageError } from '../platform/errors.ts';
import { CALLED_AS } from '../server/errors.ts';
import { readSchemaRequest, runSchemaRequest } from '../server/schema.ts';

const HELP = `Makes the schema of a shared database, or brings it up to date, with the role that owns it.

Usage: ${CALLED_AS.schema} --database URL [--grant ROLE] [--print]

  --database URL        postgres://… of the role that owns the schema (also LEASEHOLD_DATABASE_URL)
  --database-file FILE  a file that holds that URL, so that nobody sees its password
  --grant ROLE          lets this role do what a node needs, and nothing else
  --print               only prints the statements: those that are left to do, or all of them without a database
  --help                show this
`;

// Whoever reads may have seen enough.
process.stdout.on('error', () => undefined);
try {
  const request = readSchemaRequest(process.argv.slice(2), process.env);
  process.stdout.write(request === null ? HELP : `${await runSchemaRequest(request)}\n`);
} catch (error) {
  if (!(error instanceof UsageError || error instanceof StartupError)) throw error;
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
