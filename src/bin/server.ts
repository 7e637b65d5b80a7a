/** The entry point of the server: reads its arguments, starts it, prints the next steps, and stops it on a signal. */

import { setDefaultHighWaterMark } from 'node:stream';
import { ignore, readIgnored, stopSignals } from '../platform/inherited-signals.ts';
import { acceptOpenModes } from '../platform/private-files.ts';
import { type RunningServer, startServer } from '../server/composition.ts';
import { type Configuration, readConfiguration } from '../server/configuration.ts';
import { createLog } from '../server/log.ts';
import { describeFailure, exitWithError } from '../server/operator-errors.ts';
import { startupBanner } from '../server/startup-banner.ts';

const EXIT_FAILED = 1;
const RESPONSE_FLUSH_MS = 50;
const STOP_FAILED =
  'The shutdown could not be recorded; the server log shows why. All acknowledged changes are on disk.';

/** The reason for which the process is about to end. */
let storageFailure: string | null = null;

function fail(line: string, code: number): never {
  process.stderr.write(`leasehold: ${line}\n`);
  process.exit(code);
}

function configure(): Configuration {
  try {
    const configuration = readConfiguration(process.argv.slice(2), process.env, (text) => {
      process.stdout.write(text);
    });
    if (configuration !== null) return configuration;
    process.exit(0);
  } catch (error) {
    exitWithError(error);
  }
}

function stopOnSignals(server: RunningServer): void {
  let isStopping = false;
  const stop = async (): Promise<void> => {
    // Ctrl-C reaches this process twice: from the terminal and from the launcher.
    if (isStopping) return;
    isStopping = true;
    process.stdout.write('\nStopping: finishing requests in flight.\n');
    await server.stop();
    process.exit(0);
  };
  for (const signal of stopSignals(ignored)) {
    process.on(signal, () => stop().catch(() => fail(storageFailure ?? STOP_FAILED, EXIT_FAILED)));
  }
}

process.umask(0o077);
// WHY a quarter of Node's default: it counts bytes, and each of a body of single bytes that waits takes some hundred.
setDefaultHighWaterMark(false, 16 * 1024);
const ignored = readIgnored(process.env);
ignore(ignored);
// Output to a closed terminal fails; the server still stops in order.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const configuration = configure();
if (configuration.acceptsOpenModes) acceptOpenModes();
const log = createLog(configuration.logLevel);
process.on('uncaughtException', (error) => {
  log.error('uncaught exception; stopping', error);
  process.exit(EXIT_FAILED);
});
try {
  // WHY the delay: requests in flight still get their error response.
  const stopOnStorageFailure = (line: string): void => {
    storageFailure ??= line;
    setTimeout(() => fail(line, EXIT_FAILED), RESPONSE_FLUSH_MS);
  };
  const server = await startServer(configuration, log, stopOnStorageFailure);
  stopOnSignals(server);
  process.stdout.write(startupBanner(server, configuration));
} catch (error) {
  if (describeFailure(error) !== null) exitWithError(error);
  if (configuration.logLevel === 'debug') log.error('startup failed', error);
  // WHY not the message: it may contain data of the database.
  fail(
    `Startup failed (${error instanceof Error ? error.name : 'unknown error'}): the database may have been altered outside. Restore a backup; --log-level debug shows where it failed.`,
    EXIT_FAILED,
  );
}
