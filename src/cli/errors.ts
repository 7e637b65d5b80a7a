/** Exit codes and errors of commands. */

import { constants } from 'node:os';
import { LeaseholdError } from '../client/errors.ts';
import { UsageError } from '../platform/errors.ts';

/** Exit codes. `run` exits like the program that it ran. */
export const EXIT = {
  OK: 0,
  /** A usage error, found before any request. */
  USAGE: 1,
  /** The server returned an error, did not respond, or sent a response that cannot be read; or there is a bug. */
  ERROR: 2,
  /**
   * The result is negative: a broken chain, a failed expectation, a declined confirmation, a rejected use, a request
   * that was not approved, or a key slot that does not open the vault.
   */
  NEGATIVE: 3,
  /** The upstream of a brokered request responded with a status other than 2xx. */
  UPSTREAM: 4,
} as const;

/** Ctrl-C at a prompt, or a signal. The exit code is 128 plus the signal number. */
export class Cancelled extends UsageError {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals = 'SIGINT') {
    super(signal === 'SIGINT' ? 'Cancelled' : `Cancelled (${signal})`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** Nothing was done: the user declined a confirmation, or the request to confirm could not be shown. Exit code 3. */
export class Declined extends Error {
  constructor(message = 'Nothing was done.') {
    super(message);
  }
}

/** The error for a value given as an argument. It never contains the value. */
export function valueInArguments(before = ''): UsageError {
  return new UsageError(
    `${before}values cannot be arguments, because the shell records them and other users can see them. If it was a real secret, replace it`,
    'Omit it to be prompted, or use - for standard input or @FILE for a file.',
  );
}

export async function nullIfMissing<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === 'NOT_FOUND') return null;
    throw error;
  }
}

/** Another program, such as Vault, returned an error or did not respond. Exit code 2. */
export class RemoteError extends Error {
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
