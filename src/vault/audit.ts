/**
 * Reads the audit log: the filtered list, and the export. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The
 * audit log".
 */
import type { AuditEntry } from '../core/audit.ts';
import type { Context } from '../core/operation.ts';
import { exportAudit, listAudit } from '../core/operations/audit.ts';
import type { AuditFilter } from '../store/queries.ts';
import type { Head } from '../store/store.ts';
import { type PageRequest, STEP_ROWS, yieldToEventLoop } from './paging.ts';
import type { Vault } from './vault.ts';
import { scanEntries } from './verification/scan-entries.ts';

export interface EntryQuery extends AuditFilter {
  /** Timestamps in the log's format, inclusive. */
  readonly since: string | null;
  readonly until: string | null;
  readonly order: 'asc' | 'desc';
}

export async function listEntries(
  vault: Vault,
  context: Context,
  query: EntryQuery,
  page: PageRequest,
): Promise<{ entries: AuditEntry[]; total: number }> {
  const { store } = vault;
  await vault.ledger.submit(listAudit(context));
  const { last } = await store.readHead();
  const from = query.since === null ? 1 : await store.findSeqAt(query.since);
  const afterUntil = query.until === null ? null : nextMillisecond(query.until);
  const behind = afterUntil === null ? null : await store.findSeqAt(afterUntil);
  const to = behind === null ? (last?.seq ?? 0) : behind - 1;
  if (from === null || from > to) return { entries: [], total: 0 };
  return isUnfiltered(query)
    ? readUnfilteredPage(vault, from, to, query, page)
    : readMatches(vault, from, to, query, page);
}

function isUnfiltered(filter: AuditFilter): boolean {
  const { agentName, resource, action, eventType, result } = filter;
  return [agentName, resource, action, eventType, result].every((value) => value === null);
}

/** Without a filter, sequence numbers determine the page and the total. */
async function readUnfilteredPage(vault: Vault, from: number, to: number, { order }: EntryQuery, page: PageRequest) {
  const total = to - from + 1;
  const count = Math.max(0, Math.min(page.limit, total - page.offset));
  const first = order === 'asc' ? from + page.offset : to - page.offset - count + 1;
  const entries = count === 0 ? [] : await vault.store.readEntries(first, first + count - 1, count);
  return { entries: order === 'asc' ? entries : entries.reverse(), total };
}

/** Scans the whole range in steps, because the total is needed, and reads only the entries of the page. */
async function readMatches(vault: Vault, from: number, to: number, query: EntryQuery, page: PageRequest) {
  const wanted: number[] = [];
  let total = 0;
  let place: number | null = query.order === 'asc' ? from : to;
  while (place !== null) {
    await yieldToEventLoop();
    const [low, high]: [number, number] = query.order === 'asc' ? [place, to] : [from, place];
    const { seqs, next } = await vault.store.matchEntries(query, low, high, query.order);
    for (const seq of seqs) {
      if (total >= page.offset && wanted.length < page.limit) wanted.push(seq);
      total += 1;
    }
    place = next;
  }
  const entries: AuditEntry[] = [];
  for (const seq of wanted) entries.push(...(await vault.store.readEntries(seq, seq, 1)));
  return { entries, total };
}

/** The entries up to the current last one, oldest first, in steps; and the current head record. */
export async function exportEntries(
  vault: Vault,
  context: Context,
): Promise<{ head: Head | null; rows: AsyncIterable<readonly AuditEntry[]> }> {
  await vault.ledger.submit(exportAudit(context));
  const { head, last } = await vault.store.readHead();
  return { head, rows: scanEntries(vault.store, last?.seq ?? 0, STEP_ROWS) };
}

/** Null after the year 9999, where no entry can be. */
function nextMillisecond(timestamp: string): string | null {
  const next = new Date(Date.parse(timestamp) + 1).toISOString();
  return next.startsWith('+') ? null : next;
}
