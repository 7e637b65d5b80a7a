/**
 * Reads the audit log: the filtered list, and the export. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The
 * audit log".
 */

import type { AuditEntry } from '../core/audit.ts';
import type { Context } from '../core/operation.ts';
import { exportAudit, listAudit } from '../core/operations/audit.ts';
import { findSeqAt, matchEntries, readEntries, readHead } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import type { AuditFilter } from '../store/queries.ts';
import type { Head } from '../store/store.ts';
import type { LogColumns } from './log-columns.ts';
import { type PageRequest, STEP_ROWS, yieldToEventLoop } from './paging.ts';
import type { Vault } from './vault.ts';
import { scanEntries } from './verification/scan-entries.ts';

/** The entries to select, in addition to a filter. */
export interface EntryBounds {
  /** Timestamps in the log's format, inclusive. */
  readonly since: string | null;
  readonly until: string | null;
  /** Sequence numbers, exclusive. */
  readonly after: number;
  readonly before: number | null;
}

export interface EntryQuery extends AuditFilter, EntryBounds {
  readonly order: 'asc' | 'desc';
}

/** Sequence numbers, both inclusive. */
export interface SeqRange {
  readonly from: number;
  readonly to: number;
}

export async function listEntries(
  vault: Vault,
  context: Context,
  query: EntryQuery,
  page: PageRequest,
): Promise<{ entries: AuditEntry[]; total: number }> {
  await vault.ledger.submit(listAudit(context));
  const range = await findRange(vault, query);
  if (range === null) return { entries: [], total: 0 };
  return isUnfiltered(query) ? readUnfilteredPage(vault, range, query, page) : readMatches(vault, range, query, page);
}

/** Null if no entry is in it. */
export async function findRange({ store }: Vault, query: EntryBounds): Promise<SeqRange | null> {
  const { last } = await store.run(readHead());
  const first = query.since === null ? 1 : await store.run(findSeqAt(query.since));
  const afterUntil = query.until === null ? null : nextMillisecond(query.until);
  const behind = afterUntil === null ? null : await store.run(findSeqAt(afterUntil));
  const from = Math.max(first ?? Number.MAX_SAFE_INTEGER, query.after + 1);
  const to = Math.min(behind === null ? (last?.seq ?? 0) : behind - 1, (query.before ?? Number.MAX_SAFE_INTEGER) - 1);
  return from > to ? null : { from, to };
}

function isUnfiltered(filter: AuditFilter): boolean {
  const { agentName, resource, action, eventType, result } = filter;
  return [agentName, resource, action, eventType, result].every((value) => value === null);
}

/** Without a filter, sequence numbers determine the page and the total. */
async function readUnfilteredPage(vault: Vault, { from, to }: SeqRange, { order }: EntryQuery, page: PageRequest) {
  const total = to - from + 1;
  const count = Math.max(0, Math.min(page.limit, total - page.offset));
  const first = order === 'asc' ? from + page.offset : to - page.offset - count + 1;
  const entries = count === 0 ? [] : await vault.store.run(readEntries(first, first + count - 1, count));
  return { entries: order === 'asc' ? entries : entries.reverse(), total };
}

/** Finds all matches, because the total is needed, and reads only the entries of the page. */
async function readMatches(vault: Vault, range: SeqRange, query: EntryQuery, page: PageRequest) {
  const { offset, limit } = page;
  const wanted: number[] = [];
  let total = 0;
  const add = (seq: number): void => {
    if (total >= offset && wanted.length < limit) wanted.push(seq);
    total += 1;
  };
  await visitMatches(vault, range, query, add);
  const entries: AuditEntry[] = [];
  for (const seq of wanted) entries.push(...(await vault.store.run(readEntries(seq, seq, 1))));
  return { entries, total };
}

type MatchingStore = Pick<Store, 'run' | 'dialect'>;

/** Visits the matching entries in order: those in memory by their columns, the others in the database. */
export async function visitMatches(
  { store, logColumns }: { readonly store: MatchingStore; readonly logColumns: LogColumns },
  { from, to }: SeqRange,
  query: EntryQuery,
  add: (seq: number) => void,
): Promise<void> {
  const { order } = query;
  const cover = (low: number): Promise<number> => logColumns.cover(low, to, Number.POSITIVE_INFINITY);
  const inMemory = (low: number) => logColumns.visit({ from: low, to, order }, query, (_kind, _at, seq) => add(seq));
  if (order === 'desc') {
    const covered = await cover(from);
    await inMemory(covered);
    await scanMatches(store, { from, to: covered - 1 }, query, add);
    return;
  }
  // While the database is scanned, memory may drop the entries that would follow: the next scan reads these.
  let low = from;
  for (let covered = await cover(low); covered > low; covered = await cover(low)) {
    await scanMatches(store, { from: low, to: covered - 1 }, query, add);
    low = covered;
  }
  await inMemory(low);
}

/** Scans the range in steps. */
async function scanMatches(
  store: MatchingStore,
  { from, to }: SeqRange,
  query: EntryQuery,
  add: (seq: number) => void,
): Promise<void> {
  const { order, agentName, resource, action, eventType, result } = query;
  const filter: AuditFilter = { agentName, resource, action, eventType, result };
  let place: number | null = from > to ? null : order === 'asc' ? from : to;
  while (place !== null) {
    await yieldToEventLoop();
    const [low, high]: [number, number] = order === 'asc' ? [place, to] : [from, place];
    const { seqs, next } = await store.run(matchEntries(store.dialect, filter, low, high, order));
    for (const seq of seqs) add(seq);
    place = next;
  }
}

/** The entries up to the current last one, oldest first, in steps; and the current head record. */
export async function exportEntries(
  vault: Vault,
  context: Context,
): Promise<{ head: Head | null; rows: AsyncIterable<readonly AuditEntry[]> }> {
  await vault.ledger.submit(exportAudit(context));
  const { head, last } = await vault.store.run(readHead());
  return { head, rows: scanEntries(vault.store, last?.seq ?? 0, STEP_ROWS) };
}

/** Null after the year 9999, where no entry can be. */
function nextMillisecond(timestamp: string): string | null {
  const next = new Date(Date.parse(timestamp) + 1).toISOString();
  return next.startsWith('+') ? null : next;
}
