/** What the HTTP layer tells the service's log: allow-listed fields, never what was sent. */
import type { ApiErrorCode } from '../core/errors.ts';

export interface RequestLog {
  rejected(fields: {
    readonly code: ApiErrorCode;
    readonly requestId: string;
    readonly method: string;
    readonly remoteAddr: string | undefined;
  }): void;
  /** Something that is no fault was thrown: a mistake of ours. */
  unexpectedError(error: unknown, requestId: string): void;
}
