/** The commands `server` and `status`, and those that work on the database without the service. */
import { LeaseholdError } from '../../client/errors.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../errors.ts';
import { runEntry } from '../spawn-entry.ts';

const status: Command = {
  name: 'status',
  summary: 'Show whether the service is reachable and healthy',
  about: ['Needs no token. The exit code is 2 if the service is not healthy.'],
  callsService: true,
  printsRecords: true,
  async run(invocation) {
    const { settings, signal } = invocation;
    const vault = invocation.connect(true);
    const address = settings.address.value;
    try {
      const { status } = await vault.health({ signal });
      await invocation.output.record({ status, address });
      return EXIT.OK;
    } catch (error) {
      if (!(error instanceof LeaseholdError) || error.status === null || error.code === 'INVALID_RESPONSE') throw error;
      await invocation.output.record({ status: error.message, address });
      return EXIT.ERROR;
    }
  },
};

function entry(name: string, summary: string, file: string): Command {
  return {
    name,
    summary,
    about: [`For its flags, run leasehold ${name} --help.`],
    callsService: false,
    takesAllWords: true,
    handlesSignals: true,
    run: ({ rest, terminal }) => runEntry(file, rest, terminal),
  };
}

export const SERVICE_COMMANDS: readonly Command[] = [
  entry('server', 'Start the service', 'bin/server'),
  status,
  entry('migrate', 'Migrate a vault between SQLite and PostgreSQL', 'bin/migrate'),
  entry('schema', 'Create or upgrade the schema of a PostgreSQL database', 'bin/schema'),
  entry('audit-key', 'Print the key that verifies the audit log; it decrypts no values', 'bin/audit-key'),
];
