/** The errors of a backup file, each in one line. They never contain a key, a passphrase or a row. */
import { StartupError } from '../platform/errors.ts';

export class BackupError extends StartupError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'BackupError';
  }
}

/** @param what what is wrong, as a sentence without its period */
export function damaged(what: string, cause?: unknown): BackupError {
  return new BackupError(`The backup is damaged: ${what}. Use another one.`, { cause });
}
