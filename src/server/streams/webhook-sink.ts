/**
 * Posts pages of entries, signed. A repeated page has the same id if it has the same entries, so that a receiver can
 * drop it; entries have an `hmac` in any case. SOURCE: Standard Webhooks 1.0.0.
 */
import type { AuditEntry } from '../../core/audit.ts';
import { webhookSignature } from '../../crypto/webhook-signature.ts';
import { Poster, type PostTarget } from './http-post.ts';
import type { Sink } from './sink.ts';

export interface WebhookTarget extends PostTarget {
  readonly key: Uint8Array;
}

export class WebhookSink implements Sink {
  readonly #poster: Poster;
  readonly #key: Uint8Array;

  constructor(target: WebhookTarget) {
    this.#poster = new Poster(target);
    this.#key = target.key;
  }

  async send(entries: readonly AuditEntry[], signal: AbortSignal): Promise<void> {
    const now = Date.now();
    const body = JSON.stringify({
      type: 'audit.entries',
      timestamp: new Date(now).toISOString(),
      data: { entries },
    });
    const [first, last] = [entries[0], entries.at(-1)];
    // WHY the MAC: after a restored backup or an accepted roll-back, other entries have the same sequence numbers.
    const id = `audit-${first?.seq ?? 0}-${last?.seq ?? 0}-${last?.hmac ?? ''}`;
    const seconds = Math.floor(now / 1000);
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': webhookSignature(this.#key, id, seconds, body),
    };
    await this.#poster.post(body, headers, signal);
  }

  async close(): Promise<void> {
    this.#poster.close();
  }
}
