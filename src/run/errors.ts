/** What a person or a configuration asked for and can't be delivered: found before anything was asked of the service or started. */
export class Misuse extends Error {
  /** How to mend it. */
  readonly hint: string | null;

  /** INVARIANT: the message names files, lines, variables and paths, never a value. */
  constructor(message: string, hint: string | null = null) {
    super(message);
    this.name = 'Misuse';
    this.hint = hint;
  }
}
