/** Errors that the service and its tools report to the operator in one line. Any other error is a bug. */

import { StartupError, UsageError } from '../platform/errors.ts';
import { StoreError } from '../store/errors.ts';

/** The line and the exit code; null for a bug. */
export function describeFailure(thrown: unknown): { readonly line: string; readonly code: number } | null {
  // The error that ended the work, if releasing its resources failed too.
  if (thrown instanceof SuppressedError) return describeFailure(thrown.suppressed);
  if (!(thrown instanceof Error)) return null;
  // SQLite reports a damaged schema in several lines.
  const line = thrown.message.replaceAll(/\s*\n\s*/g, ' ');
  if (thrown instanceof UsageError) return { line, code: 2 };
  const isSystems = 'syscall' in thrown;
  return thrown instanceof StartupError || thrown instanceof StoreError || isSystems ? { line, code: 1 } : null;
}

/** Prints the error for the operator and exits. @throws the error itself if it is a bug */
export function exitWithError(thrown: unknown): never {
  const failure = describeFailure(thrown);
  if (failure === null) throw thrown;
  process.stderr.write(`leasehold: ${failure.line}\n`);
  process.exit(failure.code);
}
