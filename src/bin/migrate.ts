/** `npm run migrate -- --from DIR|URL --to DIR|URL`: migrates a vault from one database to another. */

import { StartupError } from '../platform/errors.ts';
import { ignore, readIgnored, stopSignals } from '../platform/inherited-signals.ts';
import { migrate } from '../server/migrate.ts';
import { MIGRATE_HELP, readMigrationRequest } from '../server/migrate-options.ts';
import { formatSummary, reporter } from '../server/migrate-report.ts';
import { exitWithError } from '../server/operator-errors.ts';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

process.umask(0o077);
// Output to a closed terminal fails; the migration continues.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const interruption = new AbortController();
const ignored = readIgnored(process.env);
ignore(ignored);
for (const signal of stopSignals(ignored)) {
  process.on(signal, () => interruption.abort(new StartupError('Interrupted. Run the same command again.')));
}
try {
  const parsed = readMigrationRequest(process.argv.slice(2), process.env);
  if (parsed === null) process.stdout.write(MIGRATE_HELP);
  else {
    for (const warning of parsed.warnings) say(`WARNING  ${warning}`);
    const { signal } = interruption;
    const result = await migrate(parsed.request, { signal, say, progress: reporter(say) });
    process.stdout.write(formatSummary(parsed.request, result));
  }
} catch (error) {
  exitWithError(error);
}
