/** The program: reads its arguments, starts the service, says what to do next, and stops when it is told to. */

import { StartupError, UsageError } from '../platform/errors.ts';
import { ignore, readIgnored, stopSignals } from '../platform/inherited-signals.ts';
import { type Service, startService } from '../server/composition.ts';
import { type Configuration, help, readConfiguration } from '../server/configuration.ts';
import { createLog } from '../server/log.ts';
import { greeting } from '../server/startup-banner.ts';
import { StoreError } from '../store/store.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const ANSWERS_LEAVE_MS = 50;

function fail(line: string, code: number): never {
  process.stderr.write(`leasehold: ${line}\n`);
  process.exit(code);
}

function configure(): Configuration {
  try {
    const configuration = readConfiguration(process.argv.slice(2), process.env);
    if (configuration !== null) return configuration;
    process.stdout.write(`${help()}\n`);
    process.exit(0);
  } catch (error) {
    if (error instanceof UsageError) fail(error.message, EXIT_USAGE);
    throw error;
  }
}

function stopOnSignals(service: Service): void {
  let isStopping = false;
  const stop = async (): Promise<void> => {
    // A terminal's Ctrl-C reaches the launcher and us: the second signal says nothing new.
    if (isStopping) return;
    isStopping = true;
    process.stdout.write('\nStopping: finishing what is in flight.\n');
    await service.stop();
    process.exit(0);
  };
  for (const signal of stopSignals(ignored)) {
    process.on(signal, () => stop().catch(() => process.exit(EXIT_FAILED)));
  }
}

/** What SQLite says of a damaged schema has several lines. */
function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ');
}

/** A file or an address that the operating system refused. */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}

process.umask(0o077);
const ignored = readIgnored(process.env);
ignore(ignored);
// A terminal that was closed is no reason not to stop in order.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const configuration = configure();
const log = createLog(configuration.logLevel);
process.on('uncaughtException', (error) => {
  log.error('a mistake that nothing caught; stopping', error);
  process.exit(EXIT_FAILED);
});
try {
  // Whoever waits is still told that nothing happened.
  const stopBroken = (line: string): void => void setTimeout(() => fail(line, EXIT_FAILED), ANSWERS_LEAVE_MS);
  const service = await startService(configuration, log, stopBroken);
  stopOnSignals(service);
  process.stdout.write(greeting(service, configuration, process.stdout.isTTY === true));
} catch (error) {
  if (error instanceof StartupError || error instanceof StoreError || isSystemError(error))
    fail(oneLine(error.message), EXIT_FAILED);
  if (configuration.logLevel === 'debug') log.error('the start failed', error);
  // Its message may hold what the database holds.
  fail(
    `The start failed (${error instanceof Error ? error.name : 'unknown error'}): the database may have been altered outside. --log-level debug shows where; else restore a backup.`,
    EXIT_FAILED,
  );
}
