/** How a command ends when it does not end well. */

/** Exit codes. `run` ends as the program that it runs. */
export const EXIT = {
  OK: 0,
  /** The mistake was found before any call. */
  MISTAKE: 1,
  /** A service answered with an error, or not at all. */
  ERROR: 2,
  /** Asked and answered, and the answer is no: a broken chain, an expectation that failed. */
  NO: 3,
} as const;

/** A mistake that was found before any call: one clear line, and how to mend it. Exit code 1. */
export class Mistake extends Error {
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}

/** Another service than Leasehold, such as Vault, answered with an error, or not at all. Exit code 2. */
export class Failure extends Error {
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
