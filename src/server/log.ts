/** The server log: one JSON object per line on standard error, with allow-listed fields and a bounded rate. */
import { destination, pino } from 'pino';
import { ERROR_STATUS } from '../api/errors.ts';
import type { RequestLog } from '../http/request-measures.ts';
import { errnoSuffix } from '../platform/errors.ts';
import { StoreError } from '../store/errors.ts';
import { CheckpointConflictError } from '../vault/audit/checkpoints.ts';
import type { LogLevel } from './flag-table.ts';
import { ReceiverError } from './webhook-client.ts';

export interface ServerLog extends RequestLog {
  info(line: string): void;
  warn(line: string): void;
  error(line: string, error?: unknown): void;
}

const MAX_LINES_PER_SECOND = 50;

export function createLog(level: LogLevel): ServerLog {
  const log = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    destination({ dest: 2, sync: true }),
  );
  // The metrics also count the rejections that are not written.
  const mayWriteRejection = limitRate();
  // WHY a separate limit: rejected requests, which anyone can send, must not hide a defect.
  const mayWriteFailure = limitRate();
  return {
    rejected({ code, requestId, method, remoteAddr }) {
      if (!mayWriteRejection()) return;
      log.info(
        { code, status: ERROR_STATUS[code], request_id: requestId, method, remote_addr: remoteAddr },
        'request rejected',
      );
    },
    acceptFailed(error) {
      if (mayWriteFailure()) log.error({ stack: stackOf(error) }, 'a connection could not be accepted');
    },
    unreadClosed(caller, connections) {
      if (mayWriteRejection()) log.warn({ caller, connections }, 'closed connections whose responses were not read');
    },
    // WHY bounded: a client may be able to repeat the request that causes the error.
    unexpectedError(error, requestId) {
      if (mayWriteFailure()) log.error({ request_id: requestId, stack: stackOf(error) }, 'unexpected error');
    },
    info: (line) => log.info(line),
    warn: (line) => log.warn(line),
    error: (line, error) => log.error({ stack: error === undefined ? undefined : stackOf(error) }, line),
  };
}

/**
 * Logs a failure of a receiver, of the storage or of a checkpoint in one line with the reason. Any other error is a
 * bug, and is logged with its stack trace.
 */
export function logFailure(logError: ServerLog['error'], line: string, error: unknown): void {
  const isForOperator =
    error instanceof ReceiverError || error instanceof CheckpointConflictError || error instanceof StoreError;
  if (isForOperator) logError(`${line}: ${error.message}`);
  // A system error's message contains the file, which the line already names.
  else if (error instanceof Error && 'syscall' in error) logError(`${line}${errnoSuffix(error)}`);
  else logError(line, error);
}

/** Logs failures like `logFailure`, but equal lines at most once per interval. */
export function withoutRepetitions(logError: ServerLog['error'], intervalMs: number): ServerLog['error'] {
  let last = { line: '', at: 0 };
  return (line, error) => {
    const now = performance.now();
    if (line === last.line && now - last.at < intervalMs) return;
    last = { line, at: now };
    if (error === undefined) logError(line);
    else logFailure(logError, line, error);
  };
}

function limitRate(): () => boolean {
  let second = 0;
  let lines = 0;
  return () => {
    const now = Math.floor(Date.now() / 1000);
    if (now !== second) [second, lines] = [now, 0];
    return ++lines <= MAX_LINES_PER_SECOND;
  };
}

/**
 * The error's name and system code, as in `Error (EMFILE)`, and its stack frames. The message is omitted, because it
 * may quote a request.
 */
function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = (error.stack ?? '').split('\n').filter((line) => line.trimStart().startsWith('at '));
  return [`${error.name}${errnoSuffix(error) || errnoSuffix(error.cause)}`, ...frames].join('\n');
}
