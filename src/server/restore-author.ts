/**
 * Confirms who made a backup, before the first write. Anyone who knows a public recipient and the public key of a key
 * slot can make a whole vault that decrypts and verifies; only the vault's own signing key tells it from a stranger's.
 * The operator gives the verifier key that was kept, or compares it on the terminal.
 */
import { StartupError } from '../platform/errors.ts';
import { quoteForShell } from '../platform/shell-quoting.ts';
import type { ReadBackup } from './restore-reading.ts';
import type { RestoreReporter, RestoreRequest } from './restore-request.ts';
import { describeLocation } from './restore-target.ts';

const formatCount = (n: number, what: string): string => `${n.toLocaleString('en-US')} ${n === 1 ? what : `${what}s`}`;

/** @throws StartupError unless the verifier key is the one that was given, or the operator says so */
export async function confirmAuthor(
  read: ReadBackup,
  request: RestoreRequest,
  reporter: RestoreReporter,
): Promise<void> {
  const newest = read.verifierKeys.at(-1) ?? '';
  const given = request.verifierKeys;
  if (given !== null) {
    // An earlier key is the vault's too: each restore and each accepted roll-back adds one.
    if (read.verifierKeys.some((key) => given.includes(key))) return;
    throw new StartupError(
      `The vault in the backup does not have the key of --verifier-key: another vault, or another author, made the backup. Its verifier key is ${newest}. Nothing was restored.`,
    );
  }
  for (const line of describeBackup(read, newest)) reporter.say(line);
  const answer = await reporter.ask(
    `Restore to ${describeLocation(request.to)}? Type yes only if this is the verifier key that you kept: `,
  );
  if (answer === 'yes') return;
  throw new StartupError(
    answer === null
      ? `Compare the verifier key of the backup with the one that you kept, then run the same command again with --verifier-key ${quoteForShell(newest)}. Nothing was restored.`
      : 'Nothing was restored.',
  );
}

/** What the backup says about itself, and has been checked against its keys. */
function describeBackup({ summary: { header, totals } }: ReadBackup, verifierKey: string): string[] {
  const { created_at, leasehold, log_end, vault_id, store } = header;
  const rows = (table: string): number => totals.rows[table] ?? 0;
  const contents = [
    formatCount(rows('credentials'), 'credential'),
    formatCount(rows('agents'), 'agent'),
    formatCount(rows('operators'), 'operator'),
    `${formatCount(rows('policies'), 'policy').replace(/policys$/, 'policies')}`,
  ];
  return [
    `The backup is of the vault ${vault_id} (${store}), taken at ${created_at} by Leasehold ${leasehold}, through entry ${log_end?.seq ?? 0} of the log: ${contents.join(', ')}.`,
    'Anyone who knows your public recipient can make a backup that decrypts. Only this verifier key shows that your vault made it:',
    `  ${verifierKey}`,
  ];
}
