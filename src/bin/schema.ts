/** `npm run schema -- --database URL`: creates or migrates the schema of a shared database as the role that owns it. */
import { CALLED_AS } from '../server/command-lines.ts';
import { exitWithError } from '../server/operator-errors.ts';
import { readSchemaRequest, runSchemaRequest } from '../server/schema.ts';

const HELP = `Creates the schema of a shared database, or migrates it to this version, as the role that owns it.

Usage: ${CALLED_AS.schema} --database URL [--grant ROLE] [--print]

  --database URL        postgres://… of the role that owns the schema (also LEASEHOLD_DATABASE_URL)
  --database-file FILE  a file with that URL, which keeps its password off the command line
  --grant ROLE          grants this role the privileges that a node needs, and no others
  --print               only prints the statements: the missing ones, or all of them without a database
  --help                show this help
`;

// The reader may close the pipe early.
process.stdout.on('error', () => undefined);
try {
  const request = readSchemaRequest(process.argv.slice(2), process.env);
  process.stdout.write(request === null ? HELP : `${await runSchemaRequest(request)}\n`);
} catch (error) {
  exitWithError(error);
}
