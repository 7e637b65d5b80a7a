/** Going through a store's lists to their end, step by step, as whoever lists does. */
import type { Credential } from '../../src/core/credential.ts';
import type { Lease } from '../../src/core/lease.ts';
import {
  type AuditFilter,
  type Counted,
  type CredentialPlace,
  type CredentialQuery,
  FIRST_CREDENTIAL,
  type LeaseQuery,
  type Listed,
  type MarkedLeases,
  NEWEST_LEASE,
  type Store,
} from '../../src/store/port.ts';

async function rowsFrom<Row, Place>(
  start: Place | null,
  limit: number,
  step: (from: Place, limit: number) => Promise<Listed<Row, Place>>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let place = start;
  while (place !== null && rows.length < limit) {
    const listed: Listed<Row, Place> = await step(place, limit - rows.length);
    rows.push(...listed.rows);
    place = listed.reached;
  }
  return rows;
}

async function countFrom<Place>(
  start: Place,
  step: (from: Place, atMost: number) => Promise<Counted<Place>>,
  atMost: number,
): Promise<Counted<Place>> {
  let count = 0;
  let place: Place | null = start;
  while (place !== null && count < atMost) {
    const counted: Counted<Place> = await step(place, atMost - count);
    count += counted.count;
    place = counted.reached;
  }
  return { count, reached: place };
}

const ALL = Number.MAX_SAFE_INTEGER;

export function countCredentials(
  store: Store,
  query: CredentialQuery,
  atMost = ALL,
): Promise<Counted<CredentialPlace>> {
  return countFrom(FIRST_CREDENTIAL, (from, most) => store.countCredentials(query, from, most), atMost);
}

/** Those behind the first `offset`. */
export async function listCredentials(
  store: Store,
  query: CredentialQuery,
  offset = 0,
  limit = ALL,
): Promise<Credential[]> {
  const { reached } = await countCredentials(store, query, offset);
  return rowsFrom(reached, limit, (from, most) => store.listCredentials(query, from, most));
}

export function countLeases(
  store: Store,
  query: LeaseQuery,
  beforeSeq = NEWEST_LEASE,
  atMost = ALL,
): Promise<Counted<number>> {
  return countFrom(beforeSeq, (from, most) => store.countLeases(query, from, most), atMost);
}

/** Those older than `beforeSeq`, behind the first `offset` of them. */
export async function listLeases(
  store: Store,
  query: LeaseQuery,
  beforeSeq = NEWEST_LEASE,
  offset = 0,
  limit = ALL,
): Promise<Lease[]> {
  const { reached } = await countLeases(store, query, beforeSeq, offset);
  return rowsFrom(reached, limit, (from, most) => store.listLeases(query, from, most));
}

export async function countEnded(store: Store, marked: MarkedLeases): Promise<number> {
  return (await countFrom(marked.mark.seq, (from) => store.countEnded(marked, from), ALL)).count;
}

/** The ordinals that fit, in that order. */
export async function matchEntries(
  store: Store,
  filter: AuditFilter,
  from: number,
  to: number,
  order: 'asc' | 'desc' = 'asc',
): Promise<number[]> {
  return rowsFrom(order === 'asc' ? from : to, ALL, async (place: number) => {
    const range = order === 'asc' ? ([place, to] as const) : ([from, place] as const);
    const { seqs, reached } = await store.matchEntries(filter, ...range, order);
    return { rows: seqs, reached };
  });
}
