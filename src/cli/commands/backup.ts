/** `leasehold backup`: writes an encrypted backup of a vault in use, or verifies one. */
import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { checkRecipients, type Lock, type Opener, parseIdentities, parseRecipients } from '../../backup/encryption.ts';
import { BackupError } from '../../backup/errors.ts';
import { assertAbsent, type BackupSummary, verifyBackup, type WrittenBackup, writeBackup } from '../../backup/file.ts';
import type { BackupHeader } from '../../backup/records.ts';
import { type FlagValues, list, text, toggle } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { childPath } from '../../platform/paths.ts';
import { type Command, defineCommand, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { inputName, readTextInput } from '../input.ts';
import { readNewPassphrase, readPassphrase, readSecretFile } from '../passphrase.ts';
import { startProgress } from '../progress.ts';
import type { Question } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const FLAGS = {
  recipient: list('AGE1…', 'encrypt to this age recipient'),
  'recipients-file': text('FILE', 'encrypt to the age recipients in this file, one per line'),
  'passphrase-file': text('FILE', 'encrypt with, or open with, the passphrase in this file; - for standard input'),
  verify: toggle('read an existing backup completely instead, and report its content'),
  'identity-file': text('FILE', 'with --verify: open with the age identities in this file'),
};

const backup = defineCommand({
  name: 'backup',
  about: [
    'The backup contains everything in the vault as of one moment. It is encrypted here, with age, to recipients or with a passphrase, and read again before the file receives its name. Values in it stay encrypted, so it is useless without the root key, which it does not contain: keep a copy of the root key in another place.',
    'If FILE is a directory, the file receives a name with the id of the vault, the time and the last entry. leasehold restore restores it, into either database.',
  ],
  arguments: [{ name: 'FILE', help: 'a new file, or a directory', count: 'one' }],
  flags: FLAGS,
  examples: {
    'leasehold backup vault.age --recipient age1…': 'encrypt to the holder of a key',
    'leasehold backup /backups --recipients-file ops.txt': 'write a file that is named by its time',
    'leasehold backup vault.age --verify --identity-file key.txt': 'read a backup again',
  },
  async run(invocation, flags, given) {
    const path = resolve(invocation.terminal.workingDirectory, given);
    if (flags.verify) return verify(invocation, path, flags);
    if (flags['identity-file'] !== null) throw new UsageError('--identity-file is for --verify');
    const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    // ORDER: before a passphrase is asked for, and before any request.
    if (!isDirectory) assertAbsent(path);
    const lock = await readLock(invocation, flags);
    const written = isDirectory
      ? await take(invocation, path, (header) => childPath(path, backupName(header)), lock)
      : await take(invocation, dirname(path), () => path, lock);
    await invocation.output.record(toRecord(written));
    return EXIT.OK;
  },
});

function backupName({ vault_id, created_at, log_end }: BackupHeader): string {
  const time = created_at.replace(/\.\d+Z$/, 'Z').replaceAll(/[-:]/g, '');
  return `leasehold-${vault_id}-${time}-${log_end?.seq ?? 0}.age`;
}

/** @throws LeaseholdError, BackupError, the signal's reason */
async function take(
  invocation: Invocation,
  dir: string,
  nameOf: (header: BackupHeader) => string,
  lock: Lock,
): Promise<WrittenBackup> {
  const { terminal, signal } = invocation;
  using progress = startProgress(terminal, 'Bytes');
  const request = new AbortController();
  try {
    const stream = await invocation.connect().backup({ signal: AbortSignal.any([signal, request.signal]) });
    const records = counted(stream, (bytes) => progress.show(bytes, null));
    return await writeBackup(dir, nameOf, records, lock, signal);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    // An unread stream would keep the server busy, and the server takes one backup at a time.
    request.abort();
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

async function verify(invocation: Invocation, file: string, flags: Given): Promise<number> {
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

type Given = FlagValues<typeof FLAGS>;

/** Asks for a passphrase if the flags name no key. @throws UsageError, BackupError, Cancelled */
async function readLock(question: Question, flags: Given): Promise<Lock> {
  const { recipient, 'recipients-file': recipientsFile, 'passphrase-file': passphraseFile } = flags;
  const given = recipient.flatMap((each) => parseRecipients(each, '--recipient'));
  const inFile =
    recipientsFile === null
      ? []
      : parseRecipients(await readTextInput(question, recipientsFile), inputName(recipientsFile));
  const recipients = [...given, ...inFile];
  if (recipients.length > 0) {
    if (passphraseFile !== null) throw new UsageError('give recipients or --passphrase-file, not both');
    await checkRecipients(recipients);
    return { kind: 'recipients', recipients };
  }
  const passphrase = await readNewPassphrase(question, passphraseFile, 'Passphrase for the backup');
  return { kind: 'passphrase', passphrase };
}

/** Asks for the passphrase if the flags name no key. @throws UsageError, Cancelled */
async function readOpener(question: Question, flags: Given): Promise<Opener> {
  const { 'identity-file': identityFile, 'passphrase-file': passphraseFile } = flags;
  if (identityFile !== null) {
    if (passphraseFile !== null) throw new UsageError('give --identity-file or --passphrase-file, not both');
    const identities = parseIdentities(await readSecretFile(question, identityFile), inputName(identityFile));
    return { kind: 'identities', identities };
  }
  const passphrase = await readPassphrase(question, passphraseFile, 'Passphrase of the backup');
  return { kind: 'passphrase', passphrase };
}

export const COMMANDS: readonly Command[] = [backup];
