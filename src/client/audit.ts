/** Calls on the audit log. SOURCE: interface 4.5; decisions, "Audit". */
import type { ApiClient, CallOptions } from './api-client.ts';
import { decodeEntry, decodeProgress, decodeVerification } from './decoders.ts';
import { LeaseholdError } from './errors.ts';
import { readEntries } from './ndjson.ts';
import type { AuditEntry, AuditFilter, Page, Verification, VerificationProgress } from './types.ts';

const AUDIT = '/api/v1/audit';

export interface Export {
  /** `seq hmac mac` of the head record, with which a verifier finds a cut tail; null for an empty log. */
  readonly head: string | null;
  /** Oldest first. To be read once. */
  readonly entries: AsyncIterable<AuditEntry>;
  /** The same as bytes of newline-delimited JSON, instead of the entries. */
  readonly bytes: ReadableStream<Uint8Array>;
}

export class Audit {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** Newest first, where `order` is not `asc`. */
  list(filter: AuditFilter = {}, options: CallOptions = {}): Promise<Page<AuditEntry>> {
    return this.#api.page(AUDIT, filter, decodeEntry, options);
  }

  /** Reads and computes all of it again. A long log takes long: give the client a `timeoutMs` to match. */
  verify(options: CallOptions = {}): Promise<Verification> {
    return this.#api.read(`${AUDIT}/verify`, {}, decodeVerification, options);
  }

  readProgress(options: CallOptions = {}): Promise<VerificationProgress> {
    return this.#api.read(`${AUDIT}/verify/progress`, {}, decodeProgress, options);
  }

  /** Every entry, as it comes. */
  async export({ signal }: CallOptions = {}): Promise<Export> {
    const spec = { method: 'GET', path: `${AUDIT}/export`, retry: 'always', signal } as const;
    const { body, headers } = await this.#api.stream(spec);
    const isLines = headers.get('content-type')?.startsWith('application/x-ndjson') === true;
    if (body === null || !isLines)
      throw new LeaseholdError('INVALID_RESPONSE', 'what was answered is no export of the log');
    return { head: headers.get('leasehold-audit-head'), entries: readEntries(body, decodeEntry, signal), bytes: body };
  }
}
