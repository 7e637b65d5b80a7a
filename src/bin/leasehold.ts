/** The command `leasehold`: finds the row of the table, and runs it. */

import { parseTyped, putFlagsBehind } from '../cli/arguments.ts';
import type { Invocation } from '../cli/command.ts';
import { Cancelled, EXIT } from '../cli/errors.ts';
import { find } from '../cli/find-command.ts';
import { overview, page } from '../cli/help.ts';
import { createInvocation } from '../cli/invocation.ts';
import { fail } from '../cli/report-error.ts';
import { resolveSettings } from '../cli/settings/resolve.ts';
import type { Settings } from '../cli/settings/settings.ts';
import { COMMANDS, GROUPS } from '../cli/table.ts';
import { type ChallengeService, processTerminal, type Terminal } from '../cli/terminal.ts';
import { readVersion } from '../cli/version.ts';
import { ignore, readIgnored, stopSignals } from '../platform/inherited-signals.ts';

/** Resolves to the exit code. */
async function main(words: readonly string[], terminal: Terminal): Promise<number> {
  let settings: Settings | null = null;
  let invocation: Invocation | null = null;
  let noun = '';
  const interruption = new AbortController();
  const ignored = readIgnored(terminal.environment);
  ignore(ignored);
  try {
    const [first] = words;
    if (first === undefined || first === '--help' || first === '-h' || (first === 'help' && words.length === 1)) {
      terminal.stdout.write(overview(GROUPS));
      return EXIT.OK;
    }
    if (first === '--version' || first === '-V' || (first === 'version' && words.length === 1)) {
      terminal.stdout.write(`leasehold ${readVersion()}\n`);
      return EXIT.OK;
    }
    if (first === '__complete') {
      const { answerShell } = await import('../cli/completion/complete.ts');
      await answerShell(words.slice(1), COMMANDS, terminal);
      return EXIT.OK;
    }
    const found = find(first === 'help' ? [...words.slice(1), '--help'] : words, COMMANDS);
    if (typeof found === 'string') {
      terminal.stdout.write(found);
      return EXIT.OK;
    }
    noun = found.command.name.split(' ')[0] ?? '';
    const typed = parseTyped(found.command, found.words);
    if (typed.wantsHelp) {
      terminal.stdout.write(page(found.command, terminal.stdout.columns));
      return EXIT.OK;
    }
    settings = await resolveSettings((name) => typed.flags.get(name)?.at(-1) ?? null, terminal);
    invocation = createInvocation(typed, settings, terminal, interruption.signal);
    if (found.command.handlesSignals !== true) abortOnSignals(interruption, ignored);
    return await found.command.run(invocation);
  } catch (error) {
    return fail({ terminal, noun }, error, settings);
  } finally {
    await invocation?.close();
  }
}

/** What is under way ends in order; who says it twice means it. */
function abortOnSignals(interruption: AbortController, ignored: readonly NodeJS.Signals[]): void {
  for (const signal of stopSignals(ignored)) {
    process.once(signal, () => interruption.abort(new Cancelled(signal)));
  }
}

/** WHY imported late: a command that calls another service needs no SQLite. */
const challengeService: ChallengeService = async (dataDir, address) => {
  const server = await import('../server/announcement.ts');
  return server.challengeService(dataDir, address);
};

const callersUmask = process.umask(0o077);
process.exitCode = await main(putFlagsBehind(process.argv.slice(2)), processTerminal(callersUmask, challengeService));
