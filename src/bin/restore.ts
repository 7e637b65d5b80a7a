/** `npm run restore -- FILE --data-dir DIR`: restores a backup into an empty data directory or database. */

import { StartupError } from '../platform/errors.ts';
import { ignore, readIgnored, stopSignals } from '../platform/inherited-signals.ts';
import { reporter } from '../server/migrate-report.ts';
import { exitWithError } from '../server/operator-errors.ts';
import { restore } from '../server/restore.ts';
import { RESTORE_HELP, readRestoreRequest } from '../server/restore-options.ts';
import { formatRestore } from '../server/restore-report.ts';
import { askOnTerminal } from '../server/terminal-question.ts';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

process.umask(0o077);
// Output to a closed terminal fails; the restore continues.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const interruption = new AbortController();
const ignored = readIgnored(process.env);
ignore(ignored);
for (const signal of stopSignals(ignored)) {
  process.on(signal, () => interruption.abort(new StartupError('Interrupted. Run the same command again.')));
}
try {
  const parsed = readRestoreRequest(process.argv.slice(2), process.env);
  if (parsed === null) process.stdout.write(RESTORE_HELP);
  else {
    for (const warning of parsed.warnings) say(`WARNING  ${warning}`);
    const { signal } = interruption;
    const ask = (question: string): Promise<string | null> => askOnTerminal(question, signal);
    const result = await restore(parsed.request, { signal, say, ask, progress: reporter(say) });
    process.stdout.write(formatRestore(parsed.request, result));
  }
} catch (error) {
  exitWithError(error);
}
