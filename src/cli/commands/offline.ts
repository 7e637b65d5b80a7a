/** Subcommands that work without a server, directly on a vault's files or database. */
import { type Environment, type FlagValues, text, toggle } from '../../flags/flag.ts';
import { StartupError, UsageError } from '../../platform/errors.ts';
import { configurationOf } from '../../server/configuration.ts';
import { VAULT_FLAGS } from '../../server/flag-table.ts';
import { chooseDatabase, filePath } from '../../server/flag-values.ts';
import { readAuditKeys } from '../../server/offline-keys.ts';
import { describeFailure } from '../../server/operator-errors.ts';
import { restore } from '../../server/restore.ts';
import { formatRestore, reporter, toRestoreRequest } from '../../server/restore-command.ts';
import { runSchemaRequest } from '../../server/schema-command.ts';
import { type Command, defineCommand } from '../command.ts';
import { askLine } from '../prompt.ts';
import { isInteractive, printNotice, type Terminal } from '../terminal.ts';

const { 'data-dir': DATA_DIR, 'root-key-file': ROOT_KEY_FILE, ...DATABASE_FLAGS } = VAULT_FLAGS;

/** The environment for the server's options. Relative paths are resolved against the caller's directory. */
function environmentOf({ environment, workingDirectory }: Terminal): Environment {
  return { ...environment, INIT_CWD: workingDirectory };
}

function databaseOf(flags: FlagValues<typeof DATABASE_FLAGS>, environment: Environment) {
  const file = filePath(flags['database-file'], environment);
  return chooseDatabase(flags.database, file, environment);
}

/** Reports an error that an operator can repair in one line, as the server does. */
async function reported<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof UsageError || error instanceof StartupError) throw error;
    const failure = describeFailure(error);
    throw failure === null ? error : new StartupError(failure.line);
  }
}

const restoreBackup = defineCommand({
  name: 'restore',
  about: [
    "The file is read completely before anything is created; chain, rows, state and a sample of values are verified before anything is published. It needs the vault's root key, which is not in the backup, or the passphrase of a key slot.",
    'A restore rolls the vault back: a node that has seen a newer entry does not start with it.',
  ],
  arguments: [{ name: 'FILE', help: 'the backup', count: 'one' }],
  flags: {
    'data-dir': text('DIR', "a data directory without a database or agents' keys; with a database, for the keys"),
    ...DATABASE_FLAGS,
    'root-key-file': ROOT_KEY_FILE,
    'slot-passphrase-file': text('FILE', 'the passphrase of a key slot, to open the vault without the root key'),
    'identity-file': text('FILE', 'the age identities that open a backup encrypted to recipients'),
    'passphrase-file': text('FILE', 'the passphrase of a backup encrypted with one'),
    'verifier-key': text(
      'KEY',
      "the vault's verifier key that you kept, as leasehold audit checkpoint --public-key prints it; several are separated by line breaks. Without it the command shows the key and asks",
    ),
    'accept-damage': toggle('restore a backup whose chain, rows or values do not verify, as it is'),
  },
  isLocal: true,
  endsItself: true,
  async run(invocation, flags, file) {
    const { terminal, signal, output } = invocation;
    const say = (line: string): void => printNotice(terminal, line);
    const warn = (line: string): void => say(`WARNING  ${line}`);
    const request = await reported(Promise.try(() => toRestoreRequest(file, flags, environmentOf(terminal), warn)));
    const ask = async (question: string): Promise<string | null> =>
      isInteractive(terminal) ? (await askLine(invocation, question)).trim() : null;
    const result = await reported(restore(request, { signal, say, ask, progress: reporter(say) }));
    output.text(formatRestore(request, result).trimEnd());
  },
});

const schema = defineCommand({
  name: 'schema',
  about: ['Run it as the role that owns the schema. The nodes then run as another role with --no-migrate.'],
  flags: {
    ...DATABASE_FLAGS,
    grant: text('ROLE', 'grant this role the privileges that a node needs, and no others'),
    print: toggle('only print the statements: the missing ones, or all of them without a database'),
  },
  isLocal: true,
  async run({ terminal, output }, { grant, print, ...flags }) {
    const database = databaseOf(flags, environmentOf(terminal));
    if (database === null && !print) throw new UsageError('give --database URL or --database-file FILE');
    output.text(await reported(runSchemaRequest({ database, grantee: grant, printsOnly: print })));
  },
});

const auditKey = defineCommand({
  name: 'audit key',
  about: [
    'Prints the keys with which an auditor verifies the audit log: see scripts/verify_audit.py. The command runs next to a server or without one, and changes nothing.',
  ],
  flags: { 'data-dir': DATA_DIR, ...DATABASE_FLAGS, 'root-key-file': ROOT_KEY_FILE },
  examples: {
    'leasehold audit key > audit.key': 'for an auditor on another machine',
  },
  isLocal: true,
  async run({ terminal, output }, flags) {
    const environment = environmentOf(terminal);
    const [dataDir, rootKeyFile] = [flags['data-dir'], flags['root-key-file']].map((file) =>
      filePath(file, environment),
    );
    const configuration = configurationOf(dataDir ?? null, rootKeyFile ?? null, environment);
    output.text(await reported(readAuditKeys({ ...configuration, database: databaseOf(flags, environment) })));
  },
});

export const COMMANDS: readonly Command[] = [restoreBackup, schema, auditKey];
