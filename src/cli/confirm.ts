/** Asks for confirmation before a destructive change. */

import type { Invocation } from './command.ts';
import { EXIT } from './errors.ts';
import { confirm } from './prompt.ts';
import { printNotice } from './terminal.ts';

/**
 * Returns null to proceed, or else the exit code. `--dry-run` takes precedence over `--yes`.
 * @throws UsageError when the terminal is not interactive
 */
export async function confirmDestructive(
  invocation: Invocation,
  describe: () => Promise<string>,
  question: string,
): Promise<number | null> {
  const { terminal, signal } = invocation;
  if (invocation.isOn('dry-run')) {
    printNotice(terminal, `${await describe()} Nothing was done.`);
    return EXIT.OK;
  }
  if (invocation.isOn('yes')) return null;
  if (await confirm({ terminal, signal }, `${await describe()} ${question}`)) return null;
  printNotice(terminal, 'Nothing was done.');
  return EXIT.NEGATIVE;
}
