/** Posts entries to a receiver of OpenTelemetry logs, over HTTP in JSON. */
import { hostname } from 'node:os';
import type { AuditEntry } from '../../core/audit.ts';
import { Poster, type PostTarget } from './http-post.ts';
import { otlpRequest, rejectedRecords } from './otlp-records.ts';
import { type Sink, SinkError } from './sink.ts';

export interface OtlpTarget extends PostTarget {
  readonly version: string;
}

export class OtlpSink implements Sink {
  readonly #poster: Poster;
  readonly #origin: { readonly version: string; readonly instance: string };

  constructor(target: OtlpTarget) {
    this.#poster = new Poster(target);
    this.#origin = { version: target.version, instance: `${hostname()}:${process.pid}` };
  }

  /**
   * WHY rejected records are sent again, which OTLP advises against: an audit entry is never dropped. The stream stays
   * there, and its lag says so.
   */
  async send(entries: readonly AuditEntry[], signal: AbortSignal): Promise<void> {
    const response = await this.#poster.post(otlpRequest(entries, this.#origin, Date.now()), {}, signal);
    const rejected = rejectedRecords(response);
    if (rejected > 0) throw new SinkError(`the receiver rejected ${rejected} of ${entries.length} records`);
  }

  async confirm(sentSeq: number): Promise<number> {
    return sentSeq;
  }

  async close(): Promise<void> {
    this.#poster.close();
  }
}
