/**
 * Counts log entries by their fields and over time. The work is bounded: what is not in memory after a quarter of a
 * second is not counted, and the response says so. SOURCE: docs/api.md, "Counting entries".
 */
import type { Context } from '../core/operation.ts';
import { listAudit } from '../core/operations/audit.ts';
import type { EntryKind } from '../store/log-columns.ts';
import type { AuditFilter } from '../store/queries.ts';
import { type EntryBounds, findRange, type SeqRange } from './audit.ts';
import type { VisitEntry } from './log-columns.ts';
import { Slice } from './paging.ts';
import type { Vault } from './vault.ts';

const COUNT_TIMEOUT_MS = 225;
/** For what is in memory, after the time for reading was used up. */
const MIN_VISIT_MS = 50;
const MAX_FACET_VALUES = 50;
/** Kinds or values between two checks of the clock: less than a millisecond. */
const SUMMED_KINDS = 1000;

interface FacetCount {
  readonly value: string;
  readonly count: number;
}

export interface Facets {
  readonly counted: number;
  /** Whether all matching entries were counted. */
  readonly isComplete: boolean;
  readonly eventTypes: readonly FacetCount[];
  readonly results: readonly FacetCount[];
  readonly agentNames: readonly FacetCount[];
}

export async function countFacets(vault: Vault, context: Context, query: AuditFilter & EntryBounds): Promise<Facets> {
  await vault.ledger.submit(listAudit(context));
  const range = await findRange(vault, query);
  const seen: CountedKind[] = [];
  const byNumber: (CountedKind | undefined)[] = [];
  const count: VisitEntry = (number) => {
    const known = byNumber[number];
    if (known !== undefined) {
      known.times += 1;
      return;
    }
    const kind = vault.logColumns.kind(number);
    if (kind === null) return;
    const counted = { kind, times: 1 };
    byNumber[number] = counted;
    seen.push(counted);
  };
  const countedFrom = range === null ? null : await visitNewest(vault, range, query, count);
  return { isComplete: range === null || countedFrom === range.from, ...(await sumKinds(seen, new Slice())) };
}

export interface CountedKind {
  readonly kind: EntryKind;
  times: number;
}

/** Pauses often, because a log may have as many kinds as memory holds. */
export async function sumKinds(
  kinds: readonly CountedKind[],
  slice: Pick<Slice, 'pause'>,
): Promise<Omit<Facets, 'isComplete'>> {
  const facets = { eventType: new Map(), result: new Map(), agentName: new Map() } as const;
  let counted = 0;
  for (let first = 0; first < kinds.length; first += SUMMED_KINDS) {
    for (const { kind, times } of kinds.slice(first, first + SUMMED_KINDS)) {
      counted += times;
      addTo(facets.eventType, kind.eventType, times);
      addTo(facets.result, kind.result, times);
      addTo(facets.agentName, kind.agentName, times);
    }
    await slice.pause();
  }
  return {
    counted,
    eventTypes: await mostFrequent(facets.eventType, slice),
    results: await mostFrequent(facets.result, slice),
    agentNames: await mostFrequent(facets.agentName, slice),
  };
}

function addTo(counts: Map<string, number>, value: string, times: number): void {
  counts.set(value, (counts.get(value) ?? 0) + times);
}

async function mostFrequent(counts: ReadonlyMap<string, number>, slice: Pick<Slice, 'pause'>): Promise<FacetCount[]> {
  let most: FacetCount[] = [];
  let group: FacetCount[] = [];
  for (const [value, count] of counts) {
    group.push({ value, count });
    if (group.length < SUMMED_KINDS) continue;
    most = first([...most, ...group]);
    group = [];
    await slice.pause();
  }
  return first([...most, ...group]);
}

const first = (facets: FacetCount[]): FacetCount[] =>
  facets.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1)).slice(0, MAX_FACET_VALUES);

export interface CountsQuery extends AuditFilter {
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly until: number;
  readonly stepMs: number;
}

interface Bucket {
  readonly at: number;
  retrievals: number;
  uses: number;
  denials: number;
  errors: number;
  entries: number;
}

export interface Counts {
  readonly isComplete: boolean;
  /** From this time on everything was counted; `since` if the counts are complete. */
  readonly countedFrom: number;
  readonly buckets: readonly Bucket[];
}

export async function countOverTime(vault: Vault, context: Context, query: CountsQuery): Promise<Counts> {
  await vault.ledger.submit(listAudit(context));
  const { since, until, stepMs } = query;
  const buckets: Bucket[] = [];
  for (let at = since; at <= until; at += stepMs) {
    buckets.push({ at, retrievals: 0, uses: 0, denials: 0, errors: 0, entries: 0 });
  }
  const times = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
  const range = await findRange(vault, { ...times, after: 0, before: null });
  if (range === null) return { isComplete: true, countedFrom: since, buckets };
  const columns: (CountedColumn | null | undefined)[] = [];
  let oldestAt = until;
  const count: VisitEntry = (number, at) => {
    const bucket = buckets[Math.floor((at - since) / stepMs)];
    if (bucket === undefined) return;
    if (at < oldestAt) oldestAt = at;
    bucket.entries += 1;
    let column = columns[number];
    if (column === undefined) {
      column = columnOf(vault.logColumns.kind(number));
      columns[number] = column;
    }
    if (column !== null) bucket[column] += 1;
  };
  // Some entries of the oldest millisecond may not be counted.
  const isComplete = (await visitNewest(vault, range, query, count)) === range.from;
  return { isComplete, countedFrom: isComplete ? since : oldestAt + 1, buckets };
}

type CountedColumn = 'retrievals' | 'uses' | 'denials' | 'errors';

function columnOf(kind: EntryKind | null): CountedColumn | null {
  if (kind?.result === 'denied') return 'denials';
  if (kind?.result === 'error') return 'errors';
  if (kind?.result !== 'allowed') return null;
  if (kind.eventType === 'credential.retrieve') return 'retrievals';
  return kind.eventType === 'credential.use' ? 'uses' : null;
}

/** Visits the matching entries, newest first, for a limited time. Returns the number from which on all were visited. */
async function visitNewest(
  vault: Vault,
  { from, to }: SeqRange,
  filter: AuditFilter,
  visit: VisitEntry,
): Promise<number> {
  const { logColumns } = vault;
  const endsAt = performance.now() + COUNT_TIMEOUT_MS;
  const covered = await logColumns.cover(from, to, COUNT_TIMEOUT_MS);
  return logColumns.visit({ from: covered, to, order: 'desc' }, filter, visit, endsAt + MIN_VISIT_MS);
}
