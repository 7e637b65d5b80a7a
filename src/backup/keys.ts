/** The files with which an operator locks and opens backups. Messages never repeat a line, which may be a secret. */

import { UsageError } from '../platform/errors.ts';
import { Secret } from '../vault/credentials/credential.ts';

const RECIPIENT = /^age1[a-z0-9]+$/;
const IDENTITY = /^AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]+$/;
/** The length in code points. */
const MIN_PASSPHRASE_LENGTH = 12;

/** The public keys in a file: one per line, with comments after `#`. @throws UsageError */
export function parseRecipients(text: string, name: string): string[] {
  return linesOf(text, RECIPIENT, `${name}: each line must be an age recipient (age1…) or a comment`);
}

/** The private keys in a file, as `age-keygen` writes it. @throws UsageError */
export function parseIdentities(text: string, name: string): Secret[] {
  const rule = `${name}: each line must be an age identity (AGE-SECRET-KEY-1…) or a comment`;
  return linesOf(text, IDENTITY, rule).map((line) => new Secret(line));
}

/** The only line. @throws UsageError for several */
export function parsePassphrase(text: string, name: string): Secret {
  const passphrase = text.replace(/\r?\n$/, '');
  if (/[\r\n]/.test(passphrase)) throw new UsageError(`${name}: must be one line`);
  return new Secret(passphrase);
}

/** @throws UsageError. A short one can be guessed by the holder of the file. */
export function assertStrong(passphrase: Secret, name: string): void {
  if ([...passphrase.reveal()].length >= MIN_PASSPHRASE_LENGTH) return;
  throw new UsageError(`${name}: must have at least ${MIN_PASSPHRASE_LENGTH} characters`);
}

function linesOf(text: string, form: RegExp, rule: string): string[] {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (lines.length === 0 || !lines.every((line) => form.test(line))) throw new UsageError(rule);
  return lines;
}
