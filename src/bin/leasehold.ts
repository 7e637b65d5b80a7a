/** Entry point of the CLI. */
import { Cancelled } from '../cli/errors.ts';
import { main } from '../cli/program.ts';
import { type ChallengeServer, processTerminal } from '../cli/terminal.ts';
import { stopSignals } from '../platform/inherited-signals.ts';

/** The first signal cancels the command, which cleans up; the second one ends a process that does not end itself. */
function abortOnSignals(ignored: readonly NodeJS.Signals[], endsItself: boolean): AbortSignal {
  const interruption = new AbortController();
  for (const signal of stopSignals(ignored)) {
    process[endsItself ? 'on' : 'once'](signal, () => interruption.abort(new Cancelled(signal)));
  }
  return interruption.signal;
}

/** WHY a dynamic import: commands that call a remote server need no SQLite. */
const challengeServer: ChallengeServer = async (dataDir, address) => {
  const server = await import('../server/server-files.ts');
  return server.challengeServer(dataDir, address);
};

const callersUmask = process.umask(0o077);
process.exitCode = await main(process.argv.slice(2), processTerminal(callersUmask, challengeServer), abortOnSignals);
