/** `npm run migrate -- --from DIR|URL --to DIR|URL`: moves a vault from one database into another. */

import { StartupError, UsageError } from '../platform/errors.ts';
import { ignore, readIgnored, stopSignals } from '../platform/inherited-signals.ts';
import { isRefusal, migrate } from '../server/migrate.ts';
import { MOVE_HELP, readMigrationRequest } from '../server/migrate-options.ts';
import { formatSummary, reporter } from '../server/migrate-report.ts';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

process.umask(0o077);
// A terminal that was closed is no reason to stop in the middle.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const interruption = new AbortController();
const ignored = readIgnored(process.env);
ignore(ignored);
for (const signal of stopSignals(ignored)) {
  process.on(signal, () => interruption.abort(new StartupError('Interrupted. Run the same again: it goes on.')));
}
try {
  const called = readMigrationRequest(process.argv.slice(2), process.env);
  if (called === null) process.stdout.write(MOVE_HELP);
  else {
    for (const warning of called.warnings) say(`WARNING  ${warning}`);
    const { signal } = interruption;
    const moved = await migrate(called.order, { signal, say, progress: reporter(say) });
    process.stdout.write(formatSummary(called.order, moved));
  }
} catch (error) {
  if (!(error instanceof UsageError || isRefusal(error))) throw error;
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
