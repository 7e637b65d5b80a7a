/** Asks the operator a question on the terminal, on standard error, so that standard output contains only results. */
import { createInterface } from 'node:readline/promises';

/**
 * The answer without surrounding blanks, empty for Ctrl-C and Ctrl-D; null without a terminal. @throws the signal's
 * reason
 */
export async function askOnTerminal(question: string, signal: AbortSignal): Promise<string | null> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return null;
  using lines = createInterface({ input: stdin, output: stderr });
  try {
    return (await lines.question(question, { signal })).trim();
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    stderr.write('\n');
    return '';
  }
}
