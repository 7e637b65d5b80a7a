/** Commands on the service itself: `server`, `status`, and those that work on its database without it. */
import { LeaseholdError } from '../../client/errors.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../errors.ts';
import { runEntry } from '../spawn-entry.ts';

const status: Command = {
  name: 'status',
  summary: 'Says whether the service is there and well; needs no token',
  about: ['Ends with exit code 2 where it is not.'],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { settings, signal } = invocation;
    const vault = invocation.connect(true);
    const address = settings.address.value;
    try {
      const { status: said } = await vault.health({ signal });
      await invocation.output.record({ status: said, address });
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
    about: [`Its flags are told by leasehold ${name} --help.`],
    asksService: false,
    takesAllWords: true,
    handlesSignals: true,
    run: ({ rest, terminal }) => runEntry(file, rest, terminal),
  };
}

export const SERVICE_COMMANDS: readonly Command[] = [
  entry('server', 'Starts the service', 'bin/server'),
  status,
  entry('migrate', 'Moves a vault from SQLite into PostgreSQL, or back', 'bin/migrate'),
  entry('schema', 'Makes the schema of a PostgreSQL database, or brings it up to date', 'bin/schema'),
  entry('audit-key', 'Prints the key that verifies the audit log and opens no value', 'bin/audit-key'),
];
