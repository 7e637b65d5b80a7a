/**
 * Errors that end a program before it does anything, each reported in one line, and the codes of system errors.
 * Messages never contain a secret value.
 */

/** A wrong call or configuration. The message names the flag, file, line, variable or field, and the rule. */
export class UsageError extends Error {
  /** How to fix the error, as a sentence. */
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.name = 'UsageError';
    this.hint = hint;
  }
}

/** The program cannot start with the data or the system that it found. */
export class StartupError extends Error {}

/** The error's system code for the end of a message, such as ` (ENOSPC)`; empty for an error without a code. */
export function errnoSuffix(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
}
