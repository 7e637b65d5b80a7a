/** Reads a store's lists to their end, step by step. */

import assert from 'node:assert/strict';
import type { AuditFilter, EntryRange } from '../../src/store/audit-log.ts';
import * as log from '../../src/store/audit-log.ts';
import * as credentials from '../../src/store/credential-lists.ts';
import { type CredentialCursor, type CredentialListQuery, FIRST_CREDENTIAL } from '../../src/store/credential-lists.ts';
import * as leases from '../../src/store/lease-lists.ts';
import { type LeaseQuery, NEWEST_LEASE, type RevokedLeases } from '../../src/store/lease-lists.ts';
import type { Store } from '../../src/store/port.ts';
import type { CountStep, ListStep } from '../../src/store/statement.ts';
import type { Credential } from '../../src/vault/credentials/credential.ts';
import type { Lease } from '../../src/vault/leases/lease.ts';

const ALL = Number.MAX_SAFE_INTEGER;
/** Many times what the lists of these tests need: one that does not come to an end fails, and does not hang. */
const MANY_STEPS = 10_000;

/** Continues from the end of each step, until the list ends or `atMost` rows were found. */
async function countFrom<Place>(
  start: Place | null,
  step: (from: Place, atMost: number) => Promise<CountStep<Place>>,
  atMost = ALL,
): Promise<CountStep<Place>> {
  let count = 0;
  let place = start;
  for (let steps = 0; place !== null && count < atMost; steps++) {
    assert.ok(steps < MANY_STEPS, 'the list does not come to an end');
    const counted = await step(place, atMost - count);
    count += counted.count;
    place = counted.next;
  }
  return { count, next: place };
}

/** Rows in steps of at most `stepRows`, until there are `limit`. */
export async function rowsFrom<Row, Place>(
  start: Place | null,
  step: (from: Place, limit: number) => Promise<ListStep<Row, Place>>,
  { limit = ALL, stepRows = ALL }: { readonly limit?: number; readonly stepRows?: number } = {},
): Promise<Row[]> {
  const all: Row[] = [];
  const readStep = async (from: Place, left: number): Promise<CountStep<Place>> => {
    const most = Math.min(left, stepRows);
    const { rows, next } = await step(from, most);
    assert.ok(rows.length <= most, `${rows.length} rows, and ${most} were asked for`);
    all.push(...rows);
    return { count: rows.length, next: next };
  };
  await countFrom(start, readStep, limit);
  return all;
}

export function countCredentials(
  store: Store,
  query: CredentialListQuery,
  atMost = ALL,
): Promise<CountStep<CredentialCursor>> {
  return countFrom(
    FIRST_CREDENTIAL,
    (from, most) => store.run(credentials.countCredentials(store.dialect, query, from, most)),
    atMost,
  );
}

/** Those behind the first `offset`. */
export async function listCredentials(
  store: Store,
  query: CredentialListQuery,
  offset = 0,
  limit = ALL,
): Promise<Credential[]> {
  const { next } = await countCredentials(store, query, offset);
  return rowsFrom(next, (from, most) => store.run(credentials.listCredentials(store.dialect, query, from, most)), {
    limit,
  });
}

export function countLeases(
  store: Store,
  query: LeaseQuery,
  beforeSeq = NEWEST_LEASE,
  atMost = ALL,
): Promise<CountStep<number>> {
  return countFrom(beforeSeq, (from, most) => store.run(leases.countLeases(store.dialect, query, from, most)), atMost);
}

/** Those older than `beforeSeq`, behind the first `offset` of them. */
export async function listLeases(
  store: Store,
  query: LeaseQuery,
  beforeSeq = NEWEST_LEASE,
  offset = 0,
  limit = ALL,
): Promise<Lease[]> {
  const { next } = await countLeases(store, query, beforeSeq, offset);
  return rowsFrom(next, (from, most) => store.run(leases.listLeases(store.dialect, query, from, most)), { limit });
}

export async function countRevokedBy(store: Store, marked: RevokedLeases): Promise<number> {
  return (
    await countFrom(marked.revocation.seq, (from) => store.run(leases.countRevokedBy(store.dialect, marked, from)))
  ).count;
}

/** The numbers of the entries that match, in that order, after the first `offset` of them. */
export async function matchEntries(
  store: Store,
  filter: AuditFilter,
  range: EntryRange,
  offset = 0,
  limit = ALL,
): Promise<number[]> {
  const { from, to, order } = range;
  const rest = (place: number): EntryRange =>
    order === 'asc' ? { from: place, to, order } : { from, to: place, order };
  const count = (place: number, most: number) => store.run(log.countEntries(store.dialect, filter, rest(place), most));
  const { next } = await countFrom(order === 'asc' ? from : to, count, offset);
  const list = (place: number, most: number) => store.run(log.listEntries(store.dialect, filter, rest(place), most));
  return (await rowsFrom(next, list, { limit })).map(({ seq }) => seq);
}

/** The active leases from `fromSeq` on. */
export async function countActive(
  store: Store,
  now: number,
  fromSeq: number,
): Promise<{ retrieve: number; use: number; oldestSeq: number | null }> {
  let [retrieve, use]: [number, number] = [0, 0];
  let oldestSeq: number | null = null;
  let before: number | null = NEWEST_LEASE;
  while (before !== null) {
    const step: leases.ActiveLeases = await store.run(leases.countActiveLeases(store.dialect, now, fromSeq, before));
    retrieve += step.retrieve;
    use += step.use;
    oldestSeq = step.oldestSeq ?? oldestSeq;
    before = step.next;
  }
  return { retrieve, use, oldestSeq };
}
