/** Before something is destroyed: what would be gone is said, and the person asked. */

import type { Invocation } from './command.ts';
import { EXIT } from './errors.ts';
import { confirm } from './prompt.ts';
import { printNotice } from './terminal.ts';

/**
 * Null where it is to be done, else the exit code to end with. `--dry-run` goes before `--yes`; who says no is told so by the code.
 * @throws UsageError where nobody is there to answer
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
