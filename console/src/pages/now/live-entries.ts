/**
 * The newest brokered requests, retrievals and denials. The first read finds them by event. Every later one reads only
 * the entries after the newest known one, so that an open page costs one short read a second.
 */
import { useQuery } from '@tanstack/react-query';
import type { AuditEntry } from '../../../../src/client/types.ts';
import { client } from '../../session/console-client.ts';
import { liveInterval, queries } from '../../session/queries.ts';

export interface LiveEntries {
  /** The sequence number of the newest entry that was read, of any event. */
  readonly newest: number;
  /** Activity, newest first. The result of a brokered request replaces its beginning. */
  readonly happened: readonly AuditEntry[];
  /** Denials, newest first. */
  readonly denials: readonly AuditEntry[];
}

const KEY = ['now-entries'];
const EVENTS = ['credential.retrieve', 'credential.use', 'credential.use_result'] as const;
const MAX_ROWS = 8;
const TAIL_ROWS = 1000;
const EMPTY: LiveEntries = { newest: 0, happened: [], denials: [] };

const isEvent = (entry: AuditEntry): boolean => EVENTS.some((event) => event === entry.event_type);

/** Combines entries with the same id: the result of a brokered request takes over the request of its beginning. */
function newestFirst(entries: readonly AuditEntry[]): AuditEntry[] {
  const rows = new Map<string, AuditEntry>();
  for (const entry of [...entries].sort((a, b) => b.seq - a.seq)) {
    const result = rows.get(entry.id);
    const { method = null, host = null, target_path = null } = entry;
    if (result === undefined) rows.set(entry.id, entry);
    else if (result.method == null) rows.set(entry.id, { ...result, method, host, target_path });
  }
  return [...rows.values()].slice(0, MAX_ROWS);
}

function add(before: LiveEntries, entries: readonly AuditEntry[]): LiveEntries {
  const happened = entries.filter((entry) => entry.result !== 'denied' && isEvent(entry));
  const denials = entries.filter(({ result }) => result === 'denied');
  return {
    newest: entries.reduce((newest, { seq }) => Math.max(newest, seq), before.newest),
    happened: newestFirst([...before.happened, ...happened]),
    denials: newestFirst([...before.denials, ...denials]),
  };
}

async function readNewest(signal: AbortSignal): Promise<LiveEntries> {
  const { data } = await client.audit.list({ limit: 1 }, { signal });
  const newest = data[0]?.seq ?? 0;
  if (newest === 0) return EMPTY;
  // Entries that are added between these reads are included in the next one.
  const range = { before: newest + 1, limit: MAX_ROWS * 2 };
  const lists = await Promise.all([
    ...EVENTS.map((event_type) => client.audit.list({ ...range, event_type }, { signal })),
    client.audit.list({ ...range, result: 'denied' }, { signal }),
  ]);
  const found = new Map(lists.flatMap((list) => list.data).map((entry) => [entry.seq, entry]));
  return add({ ...EMPTY, newest }, [...found.values()]);
}

async function readNext(signal: AbortSignal): Promise<LiveEntries> {
  const before = queries.getQueryData<LiveEntries>(KEY);
  if (before === undefined) return readNewest(signal);
  const { data } = await client.audit.list({ after: before.newest, order: 'asc', limit: TAIL_ROWS }, { signal });
  if (data.length === TAIL_ROWS) return readNewest(signal);
  return data.length === 0 ? before : add(before, data);
}

export function useLiveEntries() {
  return useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => readNext(signal),
    refetchInterval: liveInterval,
    // The list is replaced only if an entry was added.
    structuralSharing: false,
  });
}
