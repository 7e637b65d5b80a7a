/** Calls on the audit log. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The audit log". */
import { CHANGE_EVENTS, type ChangedKind } from '../vault/audit/audit-entry.ts';
import { type CallOptions, Calls } from './api-client.ts';
import { LeaseholdError } from './errors.ts';
import type {
  AuditEntry,
  AuditFilter,
  Checkpoint,
  ConsistencyProof,
  EntryProof,
  Health,
  Page,
  Rollback,
  Verification,
  VerificationProgress,
} from './types.ts';

const AUDIT = '/api/v1/audit';
/** Verifying a million rows and values takes minutes. */
const STATE_TIMEOUT_MS = 600_000;

export interface Export {
  /**
   * `seq hmac mac epoch tree control` of the head record, by which a verifier detects a truncated audit log; null for
   * an empty one.
   */
  readonly head: string | null;
  /** The entries, oldest first. Can be iterated once. */
  readonly entries: AsyncIterable<AuditEntry>;
  /** The same entries as bytes of newline-delimited JSON. Read either this or `entries`. */
  readonly bytes: ReadableStream<Uint8Array>;
}

/** Checks in addition to the audit log: every row against it, and every encrypted value. */
export interface StateOptions {
  readonly state?: boolean;
  readonly values?: boolean;
}

export class Audit extends Calls {
  /** Lists entries, newest first unless `order` is `asc`. */
  list(filter: AuditFilter = {}, options: CallOptions = {}): Promise<Page<AuditEntry>> {
    return this.api.page(AUDIT, filter, options);
  }

  /** The newest entry that changed the resource of this name or path; null if the audit log contains none. */
  async lastChange(kind: ChangedKind, name: string, options: CallOptions = {}): Promise<AuditEntry | null> {
    // The audit log names credentials and their targets by the path alone.
    const resource = kind === 'credential' || kind === 'targets' ? name : `${kind}:${name}`;
    const pages = await Promise.all(
      CHANGE_EVENTS[kind].map((event_type) =>
        this.list({ resource, event_type, result: 'allowed', limit: 1 }, options),
      ),
    );
    return pages.flatMap(({ data }) => data).toSorted((a, b) => b.seq - a.seq)[0] ?? null;
  }

  /**
   * Makes the server verify the whole audit log. A long one takes a long time, so choose the client's `timeoutMs`
   * accordingly. A check of the state may take ten minutes.
   */
  verify({ state, values, ...options }: CallOptions & StateOptions = {}): Promise<Verification> {
    const query = { ...(state ? { state: 'true' } : {}), ...(values ? { values: 'true' } : {}) };
    const limits = state || values ? { timeoutMs: STATE_TIMEOUT_MS } : {};
    return this.api.read<Verification>(`${AUDIT}/verify`, query, { ...options, ...limits });
  }

  readCheckpoint(options: CallOptions = {}): Promise<Checkpoint> {
    return this.api.read(`${AUDIT}/checkpoint`, {}, options);
  }

  /** The proof that entry `seq` is in the audit log, with the receipt for third parties. */
  proveEntry(seq: number, options: CallOptions = {}): Promise<EntryProof> {
    return this.api.read(`${AUDIT}/entries/${seq}/proof`, {}, options);
  }

  /**
   * The proof that the audit log of `to` entries extends the one of `from` entries. By default `to` is the newest
   * checkpoint's size.
   */
  proveConsistency({ from, to }: { from: number; to?: number }, options: CallOptions = {}): Promise<ConsistencyProof> {
    return this.api.read(`${AUDIT}/consistency`, { from, to }, options);
  }

  readProgress(options: CallOptions = {}): Promise<VerificationProgress> {
    return this.api.read(`${AUDIT}/verify/progress`, {}, options);
  }

  /** The entries that the audit log has lost, if the server is in recovery mode because of it. */
  readRollback(options: CallOptions = {}): Promise<Rollback> {
    return this.api.read(`${AUDIT}/rollback`, {}, options);
  }

  acceptRollback(options: CallOptions = {}): Promise<Health> {
    return this.api.post(`${AUDIT}/rollback`, {}, options, 'never');
  }

  async export({ signal }: CallOptions = {}): Promise<Export> {
    const spec = { method: 'GET', path: `${AUDIT}/export`, retry: 'always', signal } as const;
    const { body, headers } = await this.api.stream(spec);
    const isLines = headers.get('content-type')?.startsWith('application/x-ndjson') === true;
    if (body === null || !isLines)
      throw new LeaseholdError('INVALID_RESPONSE', 'the response is not an export of the audit log');
    return { head: headers.get('leasehold-audit-head'), entries: readEntries(body, signal), bytes: body };
  }
}

/** Many times the longest entry. */
const MAX_LINE_LENGTH = 1024 * 1024;

/**
 * Yields entries from chunks of any size; cancels the stream when the iteration stops early.
 * @throws LeaseholdError UNREACHABLE when the stream is interrupted, INVALID_RESPONSE for a line that is too long; the
 * signal's reason
 */
export async function* readEntries(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<AuditEntry> {
  // WHY not `for await`: streams are not iterable in every browser.
  const reader = body.getReader();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      signal?.throwIfAborted();
      const lines = (rest + decoder.decode(value, { stream: !done })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') yield JSON.parse(line);
      if (done) break;
      if (rest.length > MAX_LINE_LENGTH)
        throw new LeaseholdError('INVALID_RESPONSE', 'a line of the export is too long');
    }
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    if (error instanceof LeaseholdError) throw error;
    throw new LeaseholdError('UNREACHABLE', 'the export was interrupted', { cause: error });
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  // A complete export ends with a line feed.
  if (rest !== '') throw new LeaseholdError('UNREACHABLE', 'the export was interrupted in the middle of an entry');
}
