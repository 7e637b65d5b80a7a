/**
 * The process that reads the snapshot of a backup for the server that started it. It reads the database and holds no
 * key. Its records go to standard output, its reports over the channel to its parent.
 */
import { on } from 'node:events';
import { runReader } from '../vault/backup/reader.ts';

process.umask(0o077);
// WHY ignored: a signal to the process group ends the server in order, and the server ends this process.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
// The server has ended, or a client left.
process.on('disconnect', () => process.exit(0));
process.stdout.on('error', () => process.exit(0));
const messages = on(process, 'message');
await runReader(
  {
    receive: async () => (await messages.next()).value?.[0],
    report: (report) => void process.send?.(report),
  },
  process.stdout,
);
process.disconnect?.();
