/** The service's log: one JSON object per line on standard error, with allow-listed fields and a bounded rate. */
import { destination, pino } from 'pino';
import { ERROR_STATUS } from '../api/errors.ts';
import type { ApiErrorCode } from '../core/errors.ts';
import type { RequestLog } from '../http/log.ts';
import { errnoSuffix } from '../platform/errno.ts';
import type { LogLevel } from './configuration.ts';

export interface ServiceLog extends RequestLog {
  info(line: string): void;
  warn(line: string): void;
  error(line: string, error?: unknown): void;
}

const MAX_LINES_PER_SECOND = 50;
const COUNT_INTERVAL_MS = 60_000;

export function createLog(level: LogLevel): ServiceLog {
  const log = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    destination({ dest: 2, sync: true }),
  );
  let second = 0;
  let linesInSecond = 0;
  /** Whether a line about a request may be written now; the counts of each minute include the others. */
  const mayWrite = (): boolean => {
    const now = Math.floor(Date.now() / 1000);
    if (now !== second) [second, linesInSecond] = [now, 0];
    return ++linesInSecond <= MAX_LINES_PER_SECOND;
  };
  const counts = new Map<ApiErrorCode, number>();
  setInterval(() => {
    if (counts.size > 0) log.info({ rejected: Object.fromEntries(counts) }, 'rejected requests of the last minute');
    counts.clear();
  }, COUNT_INTERVAL_MS).unref();
  return {
    rejected({ code, requestId, method, remoteAddr }) {
      counts.set(code, (counts.get(code) ?? 0) + 1);
      if (!mayWrite()) return;
      log.info(
        { code, status: ERROR_STATUS[code], request_id: requestId, method, remote_addr: remoteAddr },
        'request rejected',
      );
    },
    acceptFailed(error) {
      if (mayWrite()) log.error({ stack: stackOf(error) }, 'a connection could not be accepted');
    },
    // WHY bounded: a caller may be able to repeat the request that causes the error.
    unexpectedError(error, requestId) {
      if (mayWrite()) log.error({ request_id: requestId, stack: stackOf(error) }, 'unexpected error');
    },
    info: (line) => log.info(line),
    warn: (line) => log.warn(line),
    error: (line, error) => log.error({ stack: error === undefined ? undefined : stackOf(error) }, line),
  };
}

/**
 * The error's name and system code, as in `Error (EMFILE)`, and its frames; not its message, which may quote a
 * request.
 */
function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = (error.stack ?? '').split('\n').filter((line) => line.trimStart().startsWith('at '));
  return [`${error.name}${errnoSuffix(error) || errnoSuffix(error.cause)}`, ...frames].join('\n');
}
