/** Runs one command line. Reads nothing from `process`, so that tests can call it. */
import { ignore, readIgnored } from '../platform/inherited-signals.ts';
import { parseTyped, putFlagsBehind } from './arguments.ts';
import type { Invocation } from './command.ts';
import { EXIT } from './errors.ts';
import { find } from './find-command.ts';
import { overview, page } from './help.ts';
import { createInvocation } from './invocation.ts';
import { reportError } from './report-error.ts';
import { resolveSettings } from './settings/resolve.ts';
import type { Settings } from './settings/settings.ts';
import { COMMANDS, GROUPS } from './table.ts';
import type { Terminal } from './terminal.ts';
import { readVersion } from './version.ts';

const NEVER = new AbortController().signal;

/** Resolves to the exit code. `interruptible` returns the abort signal of the command, given the signals to ignore. */
export async function main(
  typedWords: readonly string[],
  terminal: Terminal,
  interruptible: (ignored: readonly NodeJS.Signals[]) => AbortSignal,
): Promise<number> {
  const words = putFlagsBehind(typedWords);
  let settings: Settings | null = null;
  let invocation: Invocation | null = null;
  let noun = '';
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
      const { printCompletions } = await import('./completion/complete.ts');
      await printCompletions(words.slice(1), COMMANDS, terminal);
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
    const signal = found.command.handlesSignals === true ? NEVER : interruptible(ignored);
    invocation = createInvocation(typed, settings, terminal, signal);
    return await found.command.run(invocation);
  } catch (error) {
    return reportError({ terminal, noun }, error, settings);
  } finally {
    await invocation?.close();
  }
}
