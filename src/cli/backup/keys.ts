/** What locks and opens a backup, from the flags of a command or from a prompt. */
import { checkRecipients, type Lock, type Opener } from '../../backup/encryption.ts';
import { parseIdentities, parseRecipients } from '../../backup/keys.ts';
import { UsageError } from '../../platform/errors.ts';
import { inputName, readTextInput } from '../input.ts';
import { readNewPassphrase, readPassphrase, readSecretFile } from '../passphrase.ts';
import type { Question } from '../prompt.ts';

export interface LockFlags {
  readonly recipient: readonly string[];
  readonly 'recipients-file': string | null;
  readonly 'passphrase-file': string | null;
}

/** Asks for a passphrase if the flags name nothing. @throws UsageError, BackupError, Cancelled */
export async function readLock(question: Question, flags: LockFlags): Promise<Lock> {
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

export interface OpenerFlags {
  readonly 'identity-file': string | null;
  readonly 'passphrase-file': string | null;
}

/** Asks for the passphrase if the flags name nothing. @throws UsageError, Cancelled */
export async function readOpener(question: Question, flags: OpenerFlags): Promise<Opener> {
  const { 'identity-file': identityFile, 'passphrase-file': passphraseFile } = flags;
  if (identityFile !== null) {
    if (passphraseFile !== null) throw new UsageError('give --identity-file or --passphrase-file, not both');
    const identities = parseIdentities(await readSecretFile(question, identityFile), inputName(identityFile));
    return { kind: 'identities', identities };
  }
  const passphrase = await readPassphrase(question, passphraseFile, 'Passphrase of the backup');
  return { kind: 'passphrase', passphrase };
}
