/** Where a log stream sends entries. */
import type { AuditEntry } from '../../core/audit.ts';

export interface Sink {
  /**
   * Sends the entries, which follow those of the previous call. Resolves when the sink has taken them; see `confirm`.
   * @throws SinkError, or the signal's reason
   */
  send(entries: readonly AuditEntry[], signal: AbortSignal): Promise<void>;
  /**
   * Resolves to the last entry that the receiver has: then the position may be saved. `sentSeq` is the last one that
   * `send` took. @throws SinkError if entries that were sent may be lost, so that they must be sent again; the signal's
   * reason
   */
  confirm(sentSeq: number, signal: AbortSignal): Promise<number>;
  /** Resolves when everything that was sent is confirmed or lost. Never rejects. */
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
