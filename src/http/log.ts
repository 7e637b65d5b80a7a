/** What the HTTP layer logs: allow-listed fields, never the content of a request. */
import type { ApiErrorCode } from '../core/errors.ts';

export interface RequestLog {
  rejected(fields: {
    readonly code: ApiErrorCode;
    readonly requestId: string;
    readonly method: string;
    readonly remoteAddr: string | undefined;
  }): void;
  /** Logs that the system could not accept a connection, such as for lack of file descriptors. */
  acceptFailed(error: Error): void;
  /** Logs an exception that is not an `ApiError`, which is a bug. */
  unexpectedError(error: unknown, requestId: string): void;
}
