/** The command `leasehold`, as a process. */
import { stopSignals } from '../daemon/ignored.ts';
import { main } from './main.ts';
import { Mistake } from './mistake.ts';
import { processTerminal } from './terminal.ts';

/** What is under way ends in order; who says it twice means it. */
function abortOnSignals(ignored: readonly NodeJS.Signals[]): AbortSignal {
  const interruption = new AbortController();
  for (const signal of stopSignals(ignored)) {
    process.once(signal, () => interruption.abort(new Mistake(`broken off (${signal})`)));
  }
  return interruption.signal;
}

const callersUmask = process.umask(0o077);
process.exitCode = await main(process.argv.slice(2), processTerminal(callersUmask), abortOnSignals);
