/** Reads passphrases and other secrets from files and from prompts, and derives the secrets of key slots from them. */
import { resolve } from 'node:path';
import { assertStrong, parsePassphrase } from '../backup/encryption.ts';
import { passphraseSecret } from '../crypto/key-slots.ts';
import { UsageError } from '../platform/errors.ts';
import { warnIfReadableByOthers } from '../platform/private-files.ts';
import type { Secret } from '../vault/credentials/credential.ts';
import type { SlotParameters } from '../vault/keys/keyset.ts';
import { inputName, readTextInput } from './input.ts';
import { askHidden, type Question } from './prompt.ts';
import { printNotice } from './terminal.ts';

/** Reads the file, or prompts if there is none. @throws UsageError, Cancelled */
export async function readPassphrase(question: Question, file: string | null, prompt: string): Promise<Secret> {
  if (file === null) return askHidden(question, prompt);
  return parsePassphrase(await readSecretFile(question, file), inputName(file));
}

/** A new passphrase, which is long enough and is asked for twice. @throws UsageError, Cancelled */
export async function readNewPassphrase(question: Question, file: string | null, prompt: string): Promise<Secret> {
  const passphrase = await readPassphrase(question, file, prompt);
  assertStrong(passphrase, file === null ? 'The passphrase' : inputName(file));
  if (file !== null) return passphrase;
  const again = await askHidden(question, 'The same again');
  if (again.reveal() === passphrase.reveal()) return passphrase;
  throw new UsageError('The two passphrases differ. Nothing was changed');
}

/** Reads a secret, and warns if other users may read its file. @throws UsageError */
export async function readSecretFile(question: Question, file: string): Promise<string> {
  const text = await readTextInput(question, file);
  const { terminal } = question;
  if (file !== '-') {
    warnIfReadableByOthers(resolve(terminal.workingDirectory, file), (line) => printNotice(terminal, line));
  }
  return text;
}

interface PassphraseSlot {
  readonly kind: string;
  readonly name: string;
  readonly parameters: SlotParameters;
}

export function describeSlots(slots: readonly { readonly name: string; readonly kind: string }[]): string {
  return slots.map(({ name, kind }) => `${name} (${kind})`).join(', ');
}

/**
 * Derives a slot's secret from the passphrase in the file `from`, or asks if null; twice if it is new. @throws
 * UsageError
 */
export async function slotSecretOf(
  question: Question,
  { name, parameters }: PassphraseSlot,
  from: string | null,
  isNew: boolean,
): Promise<Uint8Array> {
  const read = isNew ? readNewPassphrase : readPassphrase;
  const passphrase = await read(question, from, `Passphrase of the key slot ${name}`);
  const secret = await passphraseSecret(passphrase, parameters);
  if (secret !== null) return secret;
  throw new UsageError(
    `the parameters of the key slot ${name} are invalid, or outside the bounds in docs/formats.md: they may have been altered`,
  );
}
