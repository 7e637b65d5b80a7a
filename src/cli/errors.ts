/** How a command ends when it does not end well. */

import { constants } from 'node:os';
import { UsageError } from '../platform/errors.ts';

/** Exit codes. `run` ends as the program that it runs. */
export const EXIT = {
  OK: 0,
  /** The mistake was found before any call. */
  USAGE: 1,
  /** A service answered with an error, or not at all. */
  ERROR: 2,
  /** Asked and answered, and the answer is no: a broken chain, an expectation that failed. */
  NEGATIVE: 3,
} as const;

/** Ctrl-C at a question, or a signal. Ends with 128 and the signal's number, as shells count. */
export class Cancelled extends UsageError {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals = 'SIGINT') {
    super(signal === 'SIGINT' ? 'Cancelled' : `Cancelled (${signal})`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** Of a value that was typed where everybody sees it; never with the value. */
export function valueInArguments(before = ''): UsageError {
  return new UsageError(
    `${before}a value is never an argument: the shell keeps it, and everybody on this machine sees it. If it was a real one, change it`,
    'Leave it out to be asked for it, or give - for standard input, or @FILE for a file.',
  );
}

/** Another service than Leasehold, such as Vault, answered with an error, or not at all. Exit code 2. */
export class RemoteError extends Error {
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
