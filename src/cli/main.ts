/** Runs one command line. Reads nothing from `process`, so that tests can call it. */
import { ignore, readIgnored } from '../platform/inherited-signals.ts';
import type { Invocation } from './command.ts';
import { EXIT } from './errors.ts';
import { createInvocation } from './invocation.ts';
import { parseCommandLine } from './program.ts';
import { reportError } from './report-error.ts';
import { resolveSettings } from './settings/resolve.ts';
import type { Settings } from './settings/settings.ts';
import { COMMANDS } from './table.ts';
import type { Terminal } from './terminal.ts';

const NEVER = new AbortController().signal;

/** Resolves to the exit code. `interruptible` returns the command's abort signal, given the signals to ignore. */
export async function main(
  words: readonly string[],
  terminal: Terminal,
  interruptible: (ignored: readonly NodeJS.Signals[]) => AbortSignal,
): Promise<number> {
  let settings: Settings | null = null;
  let invocation: Invocation | null = null;
  let noun = '';
  const ignored = readIgnored(terminal.environment);
  ignore(ignored);
  try {
    if (words[0] === '__complete') {
      const { printCompletions } = await import('./completion/complete.ts');
      await printCompletions(words.slice(1), COMMANDS, terminal);
      return EXIT.OK;
    }
    const line = parseCommandLine(words, terminal);
    if (line === null) return EXIT.OK;
    const { command, given, operands, rest } = line;
    noun = command.name.split(' ')[0] ?? '';
    const flags = Object.fromEntries(
      Object.entries(command.flags ?? {}).map(([name, flag]) => [name, flag.read(given.get(name) ?? [], `--${name}`)]),
    );
    const values = (command.arguments ?? []).map(({ count }, at) =>
      count === 'many' ? operands.slice(at) : (operands[at] ?? null),
    );
    const resolve = (): Promise<Settings> => resolveSettings((name) => given.get(name)?.at(-1) ?? null, terminal);
    settings = await resolve();
    const signal = command.handlesSignals === true ? NEVER : interruptible(ignored);
    const field = given.get('field')?.at(-1) ?? null;
    const waitsForApprovals = command.returnsPending !== true;
    invocation = createInvocation({
      terminal,
      settings,
      signal,
      rest,
      field,
      waitsForApprovals,
      resolveSettings: resolve,
    });
    const code = await command.run(invocation, flags, ...values);
    return typeof code === 'number' ? code : EXIT.OK;
  } catch (error) {
    return reportError({ terminal, noun }, error, settings);
  } finally {
    await invocation?.close();
  }
}
