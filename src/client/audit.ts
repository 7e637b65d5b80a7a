/** Calls on the audit log. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The audit log". */
import type { ApiClient, CallOptions } from './api-client.ts';
import { decodeEntry, decodeProgress, decodeVerification } from './decoders.ts';
import { LeaseholdError } from './errors.ts';
import { readEntries } from './ndjson.ts';
import type { AuditEntry, AuditFilter, Page, Verification, VerificationProgress } from './types.ts';

const AUDIT = '/api/v1/audit';

export interface Export {
  /** `seq hmac mac` of the head record, by which a verifier detects a truncated log; null for an empty log. */
  readonly head: string | null;
  /** Oldest first. Can be iterated once. */
  readonly entries: AsyncIterable<AuditEntry>;
  /** The same entries as bytes of newline-delimited JSON. Read either this or `entries`. */
  readonly bytes: ReadableStream<Uint8Array>;
}

export class Audit {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** Newest first, unless `order` is `asc`. */
  list(filter: AuditFilter = {}, options: CallOptions = {}): Promise<Page<AuditEntry>> {
    return this.#api.page(AUDIT, filter, decodeEntry, options);
  }

  /** Makes the service verify the whole log. A long log takes long: choose the client's `timeoutMs` accordingly. */
  verify(options: CallOptions = {}): Promise<Verification> {
    return this.#api.read(`${AUDIT}/verify`, {}, decodeVerification, options);
  }

  readProgress(options: CallOptions = {}): Promise<VerificationProgress> {
    return this.#api.read(`${AUDIT}/verify/progress`, {}, decodeProgress, options);
  }

  /** Streams every entry. */
  async export({ signal }: CallOptions = {}): Promise<Export> {
    const spec = { method: 'GET', path: `${AUDIT}/export`, retry: 'always', signal } as const;
    const { body, headers } = await this.#api.stream(spec);
    const isLines = headers.get('content-type')?.startsWith('application/x-ndjson') === true;
    if (body === null || !isLines)
      throw new LeaseholdError('INVALID_RESPONSE', 'the response is not an export of the audit log');
    return { head: headers.get('leasehold-audit-head'), entries: readEntries(body, decodeEntry, signal), bytes: body };
  }
}
