/** `leasehold backup`: writes an encrypted backup of a vault in use, verifies one, or writes them at an interval. */
import { statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { Lock } from '../../backup/encryption.ts';
import { BackupError } from '../../backup/errors.ts';
import { assertAbsent, type BackupSummary, verifyBackup, type WrittenBackup, writeBackup } from '../../backup/file.ts';
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { childPath } from '../../platform/child-path.ts';
import { UsageError } from '../../platform/errors.ts';
import { readLock, readOpener } from '../backup/keys.ts';
import {
  backupName,
  deleteOld,
  deleteUnfinished,
  listBackups,
  parseRetention,
  type Retention,
} from '../backup/retention.ts';
import { runSchedule } from '../backup/schedule.ts';
import { type Command, defineCommand, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { list, parseDuration, parsed, text, toggle } from '../flags.ts';
import { startProgress } from '../progress.ts';
import { reportError } from '../report-error.ts';
import { printNotice } from '../terminal.ts';

const MIN_INTERVAL_S = 60;
const MAX_INTERVAL_S = 14 * 86_400;
/** The origin of checkpoints has the id of the vault. SOURCE: docs/formats.md, "Checkpoints". */
const ORIGIN = /^leasehold\/([A-Za-z0-9_-]{22})(?:\/|$)/;

const FLAGS = {
  recipient: list('AGE1…', 'encrypt to this age recipient'),
  'recipients-file': text('FILE', 'encrypt to the age recipients in this file, one per line', 'file'),
  'passphrase-file': text(
    'FILE',
    'encrypt with, or open with, the passphrase in this file; - for standard input',
    'file',
  ),
  schedule: parsed('INTERVAL', 'take a backup at this interval, such as 6h, until interrupted', toIntervalMs),
  keep: parsed(
    'N|AGE',
    'afterwards delete older backups of this vault from the directory: beyond N, or beyond AGE, such as 7d',
    parseRetention,
  ),
  verify: toggle('read an existing backup completely instead, and report what it has'),
  'identity-file': text('FILE', 'with --verify: open with the age identities in this file', 'file'),
};

export const backup: Command = defineCommand({
  name: 'backup',
  summary: 'Write an encrypted backup of the vault while it is in use',
  about: [
    'The backup has everything in the vault as of one moment. It is encrypted here, with age, to recipients or with a passphrase, and read again before the file gets its name. Values in it stay sealed, so it is useless without the root key, which is not in it: keep a copy of the root key in another place.',
    'If FILE is a directory, the file gets a name with the id of the vault, the time and the last entry. leasehold restore restores it, into either database.',
  ],
  arguments: [{ name: 'FILE', help: 'a new file, or a directory', count: 'one', completes: 'file' }],
  flags: FLAGS,
  examples: [
    { line: 'leasehold backup vault.age --recipient age1…', does: 'encrypt to the holder of a key' },
    {
      line: 'leasehold backup /backups --recipients-file ops.txt --schedule 6h --keep 28',
      does: 'every six hours; keep a week',
    },
    { line: 'leasehold backup vault.age --verify --identity-file key.txt', does: 'read a backup again' },
  ],
  async run(invocation, flags, given) {
    const { terminal, output } = invocation;
    const path = resolve(terminal.workingDirectory, given);
    if (flags.verify) return verify(invocation, path, flags);
    if (flags['identity-file'] !== null) throw new UsageError('--identity-file is for --verify');
    const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    const { schedule, keep } = flags;
    if (!isDirectory) {
      if (schedule !== null || keep !== null) throw new UsageError('--schedule and --keep need a directory');
      // ORDER: before a passphrase is asked for, and before any request.
      assertAbsent(path);
    }
    const lock = await readLock(invocation, flags);
    const target: Target = isDirectory
      ? { dir: path, file: null, keep }
      : { dir: dirname(path), file: path, keep: null };
    if (schedule === null) {
      const written = await take(invocation, invocation.connect(), target, lock);
      await output.record(toRecord(written));
      return deleteOlder(invocation, target, written);
    }
    let vaultId: string | null = null;
    await runSchedule(
      {
        intervalMs: schedule,
        async lastTakenAt() {
          const backups = listBackups(path);
          if (backups.length > 0) vaultId ??= await readVaultId(await invocation.reconnect(), invocation.signal);
          return backups.find((each) => each.vaultId === vaultId)?.takenAt ?? null;
        },
        async take() {
          const written = await take(invocation, await invocation.reconnect(), target, lock);
          vaultId = written.header.vault_id;
          const { file, size_bytes, through_entry, created_at } = toRecord(written);
          if (output.isForPeople)
            output.text(`${created_at}  ${file}  ${size_bytes} bytes, through entry ${through_entry}`);
          else output.jsonLine(toRecord(written));
          deleteOlder(invocation, target, written);
        },
        onFailure(error, retryMs) {
          reportError({ terminal, noun: 'backup' }, error, invocation.settings);
          printNotice(
            terminal,
            `${new Date().toISOString()}  No backup was taken. The next try is in ${Math.round(retryMs / 1000)} s.`,
          );
        },
      },
      invocation.signal,
    );
    return EXIT.OK;
  },
});

interface Target {
  readonly dir: string;
  /** Null for a name that is made from the backup. */
  readonly file: string | null;
  readonly keep: Retention | null;
}

/** @throws LeaseholdError, BackupError, the signal's reason */
async function take(
  { terminal, signal }: Invocation,
  vault: Leasehold,
  { dir, file }: Target,
  lock: Lock,
): Promise<WrittenBackup> {
  const progress = startProgress(terminal, 'Bytes');
  const request = new AbortController();
  try {
    const stream = await vault.backup({ signal: AbortSignal.any([signal, request.signal]) });
    const records = counted(stream, (bytes) => progress.show(bytes, null));
    return await writeBackup(dir, (header) => file ?? childPath(dir, backupName(header)), records, lock, signal);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    // A stream that was not read to its end would go on at the service, which takes one backup at a time.
    request.abort();
    progress.end();
  }
}

/** Returns the exit code. A failure is reported here, because the backup was taken. */
function deleteOlder({ terminal, settings }: Invocation, { dir, keep }: Target, { file }: WrittenBackup): number {
  if (keep === null) return EXIT.OK;
  try {
    deleteUnfinished(dir, Date.now());
    for (const name of deleteOld(dir, basename(file), keep, Date.now())) printNotice(terminal, `Deleted ${name}.`);
    return EXIT.OK;
  } catch (error) {
    const code = reportError({ terminal, noun: 'backup' }, error, settings);
    printNotice(terminal, `The backup ${file} was taken, but not all older files could be deleted.`);
    return code;
  }
}

/** Null if the log contradicts its checkpoints: then a backup is due, which has the id. @throws LeaseholdError */
async function readVaultId(vault: Leasehold, signal: AbortSignal): Promise<string | null> {
  try {
    const { origin } = await vault.audit.readCheckpoint({ signal });
    return ORIGIN.exec(origin)?.[1] ?? null;
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === 'INTEGRITY_FAILURE') return null;
    throw error;
  }
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    onBytes(bytes);
    yield chunk;
  }
}

async function verify(invocation: Invocation, file: string, flags: Parameters<typeof readOpener>[1]): Promise<number> {
  const { terminal, output } = invocation;
  try {
    const summary = await verifyBackup(file, await readOpener(invocation, flags));
    await output.record(toRecord({ ...summary, file, sizeBytes: statSync(file).size }));
    return EXIT.OK;
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    printNotice(terminal, `leasehold: ${error.message}`);
    return EXIT.NEGATIVE;
  }
}

function toRecord({ file, sizeBytes, header, totals }: BackupSummary & Pick<WrittenBackup, 'file' | 'sizeBytes'>) {
  return {
    file,
    size_bytes: sizeBytes,
    created_at: header.created_at,
    vault_id: header.vault_id,
    through_entry: header.log_end?.seq ?? 0,
    store: header.store,
    schema: header.schema,
    leasehold: header.leasehold,
    credentials: totals.rows['credentials'] ?? 0,
    agents: totals.rows['agents'] ?? 0,
    agent_keys: totals.agent_keys,
    entries: totals.rows['audit_entries'] ?? 0,
    opened_by: header.key_slots.map(({ name, kind }) => `${name} (${kind})`).join(', '),
  };
}

/** @throws UsageError */
function toIntervalMs(given: string, field: string): number {
  const seconds = /[smhdw]$/.test(given) ? parseDuration(given) : null;
  if (seconds !== null && seconds >= MIN_INTERVAL_S && seconds <= MAX_INTERVAL_S) return seconds * 1000;
  throw new UsageError(`${field}: must be a duration from 1m to 14d, such as 6h`);
}
