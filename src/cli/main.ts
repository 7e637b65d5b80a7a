/**
 * Runs one command line. Reads nothing from `process`, so that tests can call it. WHY dynamic imports: help needs only
 * the command table.
 */
import { ignore, readIgnored } from '../platform/inherited-signals.ts';
import { EXIT } from './errors.ts';
import { type CommandLine, parseCommandLine } from './program.ts';
import type { Terminal } from './terminal.ts';

/**
 * Resolves to the exit code. `interruptible` returns the command's abort signal, given the signals to ignore, and
 * whether a second signal must not end the process.
 */
export async function main(
  words: readonly string[],
  terminal: Terminal,
  interruptible: (ignored: readonly NodeJS.Signals[], endsItself: boolean) => AbortSignal,
): Promise<number> {
  const ignored = readIgnored(terminal.environment);
  ignore(ignored);
  let line: CommandLine | null;
  try {
    line = await parseCommandLine(words, terminal);
  } catch (error) {
    const { reportError } = await import('./report-error.ts');
    return reportError({ terminal, noun: '' }, error, null);
  }
  if (line === null) return EXIT.OK;
  const { runCommandLine } = await import('./invocation.ts');
  return runCommandLine(line, terminal, (endsItself) => interruptible(ignored, endsItself));
}
