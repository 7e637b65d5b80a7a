/** Errors for whoever starts a program: found before anything was done, told in one clear line. Messages never hold a value. */

/** The program was called or configured wrongly. The message names the flag, file, line, variable or field, and the rule. */
export class UsageError extends Error {
  /** How to fix it, as a sentence. */
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.name = 'UsageError';
    this.hint = hint;
  }
}

/** The service cannot start on what it found. */
export class StartupError extends Error {}
