/** A mistake in how the program was called: one clear line, exit code 2. */
export class UsageError extends Error {}
