/** Logs failures that are expected: those of receivers, and of the storage. */
import { errnoSuffix } from '../platform/errno.ts';
import { StoreError } from '../store/errors.ts';
import { CheckpointConflictError } from '../vault/checkpoints.ts';
import type { ServiceLog } from './log.ts';
import { SinkError } from './streams/sink.ts';

/** In one line with the reason. Any other error is a bug, and is logged with its frames. */
export function logFailure(logError: ServiceLog['error'], line: string, error: unknown): void {
  const isForOperator =
    error instanceof SinkError || error instanceof CheckpointConflictError || error instanceof StoreError;
  if (isForOperator) logError(`${line}: ${error.message}`);
  // The message of a system error names the file, as the line does.
  else if (error instanceof Error && 'syscall' in error) logError(`${line}${errnoSuffix(error)}`);
  else logError(line, error);
}
