/** Where a log stream sends entries. */
import type { AuditEntry } from '../../core/audit.ts';

export interface Sink {
  /**
   * Sends the entries, which follow those of the previous call. Resolves when the receiver has them: then the position
   * may be saved. @throws SinkError, or the signal's reason
   */
  send(entries: readonly AuditEntry[], signal: AbortSignal): Promise<void>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** The message is for the operator, and repeats nothing that the receiver said. */
export class SinkError extends Error {
  /** How long the receiver asked to wait; null if it did not. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message);
    this.name = 'SinkError';
    this.retryAfterMs = retryAfterMs;
  }
}

/** One JSON object, as a line of the export has it. */
export const toLine = (entry: AuditEntry): string => `${JSON.stringify(entry)}\n`;
