/**
 * Reads the audit log: the filtered list, the export, and verification with its progress. SOURCE: docs/api.md, "The
 * audit log"; docs/decisions.md, "The audit log".
 */

import { authorize, type Context } from '../../core/operation.ts';
import type { PageRequest } from '../../core/page.ts';
import {
  type AuditFilter,
  countEntries,
  type EntryRange,
  findSeqAt,
  readEntries,
  readHead,
  listEntries as readMatches,
} from '../../store/audit-log.ts';
import type { Store } from '../../store/port.ts';
import type { CountStep } from '../../store/statement.ts';
import type { Head } from '../../store/stored-data.ts';
import { inSteps, type Listing, readListing, sliceListing } from '../paging.ts';
import type { Vault } from '../vault.ts';
import type { AuditEntry } from './audit-entry.ts';
import type { VerificationResult, VerificationStatus } from './verification/verifier.ts';

interface EntryBounds {
  /** Timestamps in the audit log's format, inclusive. */
  readonly since: string | null;
  readonly until: string | null;
  /** Sequence numbers, exclusive. */
  readonly after: number;
  readonly before: number | null;
}

export interface EntryQuery extends AuditFilter, EntryBounds {
  readonly order: 'asc' | 'desc';
}

/** The total is exact: the entries outside the page are counted, in steps. */
export async function listEntries(
  { ledger, store, scanTurns }: Vault,
  context: Context,
  query: EntryQuery,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Listing<AuditEntry>> {
  await ledger.read(authorize(context, 'audit.list'));
  const range = await findRange(store, query);
  if (range === null) return sliceListing([], page);
  const { agentName, resource, action, eventType, result } = query;
  const filter: AuditFilter = { agentName, resource, action, eventType, result };
  const isFiltered = Object.values(filter).some((text) => text !== null);
  const { from, to, order } = range;
  const rest = (place: number): EntryRange =>
    order === 'asc' ? { from: place, to, order } : { from, to: place, order };
  const source = {
    decideAgain: () => ledger.read(authorize(context, 'audit.list')),
    start: order === 'asc' ? from : to,
    list: (place: number, limit: number) => store.run(readMatches(store.dialect, filter, rest(place), limit)),
    count: async (place: number, atMost: number) =>
      isFiltered ? store.run(countEntries(store.dialect, filter, rest(place), atMost)) : countAll(rest(place), atMost),
  };
  return readListing(page, source, scanTurns.readerOf(context, signal, isFiltered ? 'log' : 'list'));
}

/** Sequence numbers give the count if there is no filter. */
function countAll({ from, to, order }: EntryRange, atMost: number): CountStep<number> {
  const count = Math.min(to - from + 1, atMost);
  const next = order === 'asc' ? from + count : to - count;
  return { count, next: next < from || next > to ? null : next };
}

/** Null if no entry is in it. */
async function findRange(store: Store, query: EntryQuery): Promise<EntryRange | null> {
  const { last } = await store.run(readHead());
  const first = query.since === null ? 1 : await store.run(findSeqAt(query.since));
  const afterUntil = query.until === null ? null : nextMillisecond(query.until);
  const behind = afterUntil === null ? null : await store.run(findSeqAt(afterUntil));
  const from = Math.max(first ?? Number.MAX_SAFE_INTEGER, query.after + 1);
  const to = Math.min(behind === null ? (last?.seq ?? 0) : behind - 1, (query.before ?? Number.MAX_SAFE_INTEGER) - 1);
  return from > to ? null : { from, to, order: query.order };
}

/** The entries up to the current last one, oldest first, in steps; and the current head record. */
export async function exportEntries(
  { ledger, store, scanTurns }: Vault,
  context: Context,
  signal: AbortSignal,
): Promise<{ head: Head | null; rows: AsyncIterable<readonly AuditEntry[]> }> {
  const decide = () => ledger.read(authorize(context, 'audit.export'));
  await decide();
  const { head, last } = await store.run(readHead());
  const lastSeq = last?.seq ?? 0;
  const list = async (from: number, limit: number) => {
    const rows = await store.run(readEntries(from, lastSeq, limit));
    const next = (rows.at(-1)?.seq ?? lastSeq) + 1;
    return { rows, next: next > lastSeq ? null : next };
  };
  const source = { decideAgain: decide, list };
  const reader = scanTurns.readerOf(context, signal, 'log');
  return { head, rows: inSteps(lastSeq === 0 ? null : 1, Number.POSITIVE_INFINITY, source, reader) };
}

/** Null after the year 9999, where no entry can be. */
function nextMillisecond(timestamp: string): string | null {
  const next = new Date(Date.parse(timestamp) + 1).toISOString();
  return next.startsWith('+') ? null : next;
}

/**
 * Authorizes the caller. Returns the function that verifies, which ends soon after its signal.
 * @throws ACCESS_DENIED, UNAUTHENTICATED, SESSION_EXPIRED, UNAVAILABLE
 */
export async function authorizeVerification(
  vault: Vault,
  context: Context,
): Promise<(signal: AbortSignal) => Promise<VerificationResult>> {
  await vault.ledger.read(authorize(context, 'audit.verify'));
  return (signal) => vault.verifier.verify(signal);
}

/** The status of the verification that runs for any caller; null if none runs. @throws as `authorizeVerification` */
export async function readProgress(vault: Vault, context: Context): Promise<VerificationStatus | null> {
  await vault.ledger.read(authorize(context, 'audit.verify'));
  return vault.verifier.status;
}
