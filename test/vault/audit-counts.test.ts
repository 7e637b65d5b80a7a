// Lists, facets and counts over time equal a naive model on random logs, whatever is in memory already.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { AuditEntry } from '../../src/core/audit.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import { Secret } from '../../src/core/secret.ts';
import { listEntries } from '../../src/vault/audit.ts';
import { type CountsQuery, countFacets, countOverTime } from '../../src/vault/audit-counts.ts';
import { storeCredential } from '../../src/vault/credentials.ts';
import { columnsOf } from '../../src/vault/log-columns.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { executeSql } from '../kit/direct-db.ts';
import { runs } from '../kit/property.ts';
import { admin, openVault } from './fixture.ts';
import { UnhurriedColumns } from './log-without-database.ts';

const LENGTH = 40;
const BEGIN = Date.parse('2026-01-01T00:00:00.000Z');
const EVENTS = ['credential.retrieve', 'credential.use', 'credential.store', 'auth.verify'];
const AGENTS = ['ci', 'CI', 'operator:ann', 'admin'];
const RESULTS = ['allowed', 'denied', 'not_found', 'error'];
const RESOURCES = ['prod/a', 'prod/b', 'dev/a'];

type Random = Pick<AuditEntry, 'seq' | 'event_type' | 'action' | 'agent_name' | 'result' | 'resource'> & { at: number };

const from = (values: readonly string[]) => fc.constantFrom(...values);
const randomLog = fc
  .array(fc.tuple(fc.nat(3000), from(EVENTS), from(AGENTS), from(RESULTS), from(RESOURCES)), {
    minLength: LENGTH,
    maxLength: LENGTH,
  })
  .map((rows) => {
    let at = BEGIN;
    return rows.map(([later, event_type, agent_name, result, resource], index): Random => {
      at += later;
      const action = event_type.slice(event_type.indexOf('.') + 1);
      return { seq: index + 1, at, event_type, action, agent_name, result, resource };
    });
  });
const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null, freq: 2 });
const instant = fc.nat(90_000).map((ms) => BEGIN + ms);
const randomQuery = fc.record({
  agentName: maybe(from(AGENTS)),
  resource: maybe(fc.constantFrom('prod/*', '*/a', 'prod/b', '?ev/a')),
  action: maybe(fc.constantFrom('retrieve', 'use', 'none')),
  eventType: maybe(from(EVENTS)),
  result: maybe(from(RESULTS)),
  since: maybe(instant),
  until: maybe(instant),
  after: fc.oneof(fc.constant(0), fc.nat(LENGTH + 2)),
  before: maybe(fc.integer({ min: 1, max: LENGTH + 2 })),
  order: fc.constantFrom<'asc' | 'desc'>('asc', 'desc'),
  page: fc.record({ limit: fc.integer({ min: 1, max: 50 }), offset: fc.nat(10) }),
  step: fc.integer({ min: 1, max: 60 }),
});
type Query = typeof randomQuery extends fc.Arbitrary<infer T> ? T : never;

const GLOBS: Readonly<Record<string, RegExp>> = {
  'prod/*': /^prod\/.*$/,
  '*/a': /^.*\/a$/,
  'prod/b': /^prod\/b$/,
  '?ev/a': /^.ev\/a$/,
};

function matches(entry: Random, query: Omit<Query, 'since' | 'until' | 'after' | 'before'>): boolean {
  const is = (wanted: string | null, value: string): boolean => wanted === null || wanted === value;
  return (
    is(query.agentName, entry.agent_name) &&
    is(query.action, entry.action) &&
    is(query.eventType, entry.event_type) &&
    is(query.result, entry.result) &&
    (query.resource === null || GLOBS[query.resource]?.test(entry.resource) === true)
  );
}

function facet(entries: readonly Random[], textOf: (entry: Random) => string) {
  const groups = Map.groupBy(entries, textOf);
  return [...groups]
    .map(([value, { length: count }]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
}

function countNaively(entries: readonly Random[], { since, until, stepMs }: CountsQuery) {
  const buckets = [];
  for (let at = since; at <= until; at += stepMs) {
    const inside = entries.filter((entry) => entry.at >= at && entry.at < at + stepMs && entry.at <= until);
    const count = (test: (entry: Random) => boolean): number => inside.filter(test).length;
    const allowed = (event: string) => count((entry) => entry.event_type === event && entry.result === 'allowed');
    buckets.push({
      at,
      retrievals: allowed('credential.retrieve'),
      uses: allowed('credential.use'),
      denials: count(({ result }) => result === 'denied'),
      errors: count(({ result }) => result === 'error'),
      entries: inside.length,
    });
  }
  return buckets;
}

async function assertLikeModel(vault: Vault, log: readonly Random[], query: Query): Promise<void> {
  const { page, order, step, ...filter } = query;
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());
  const range = { ...filter, since: iso(query.since), until: iso(query.until) };
  const selected = log.filter(
    (entry) =>
      matches(entry, query) &&
      entry.at >= (query.since ?? 0) &&
      entry.at <= (query.until ?? Number.POSITIVE_INFINITY) &&
      entry.seq > query.after &&
      entry.seq < (query.before ?? Number.POSITIVE_INFINITY),
  );
  const ordered = order === 'asc' ? selected : selected.toReversed();
  const listed = await listEntries(vault, admin(), { ...range, order }, page);
  const wanted = ordered.slice(page.offset, page.offset + page.limit).map(({ seq }) => seq);
  assert.deepEqual([listed.entries.map(({ seq }) => seq), listed.total], [wanted, selected.length]);

  assert.deepEqual(await countFacets(vault, admin(), range), {
    counted: selected.length,
    isComplete: true,
    eventTypes: facet(selected, ({ event_type }) => event_type),
    results: facet(selected, ({ result }) => result),
    agentNames: facet(selected, ({ agent_name }) => agent_name),
  });

  const since = query.since ?? BEGIN;
  const counts = { ...filter, since, until: Math.max(since, query.until ?? BEGIN + 90_000), stepMs: step * 1000 };
  const inTime = log.filter((entry) => matches(entry, query) && entry.at >= since);
  assert.deepEqual(await countOverTime(vault, admin(), counts), {
    isComplete: true,
    countedFrom: since,
    buckets: countNaively(inTime, counts),
  });
}

test('lists and counts equal a naive model', async (t) => {
  const vault = await openVault(t);
  for (let number = 0; number < LENGTH; number++) {
    const request = { path: `made/${number}` as CredentialPath, value: new Secret('v'), onlyIfNew: true };
    await storeCredential(vault, admin(), { ...request, type: undefined, description: undefined });
  }
  const quote = (text: string): string => `'${text}'`;
  const rewrite = (log: readonly Random[]): Promise<void> => {
    const column = (name: string, textOf: (entry: Random) => string): string =>
      `${name} = CASE seq ${log.map((entry) => `WHEN ${entry.seq} THEN ${quote(textOf(entry))}`).join(' ')} END`;
    return executeSql(
      vault.directory,
      `UPDATE audit_entries SET ${[
        column('timestamp', ({ at }) => new Date(at).toISOString()),
        column('event_type', ({ event_type }) => event_type),
        column('action', ({ action }) => action),
        column('agent_name', ({ agent_name }) => agent_name),
        column('result', ({ result }) => result),
        column('resource', ({ resource }) => resource),
      ].join(', ')}`,
    );
  };
  await fc.assert(
    fc.asyncProperty(randomLog, fc.array(randomQuery, { minLength: 4, maxLength: 4 }), async (log, queries) => {
      await rewrite(log);
      const fresh = { ...vault, logColumns: new UnhurriedColumns(columnsOf(vault.store)) };
      for (const query of queries) await assertLikeModel(fresh, log, query);
      await fresh.logColumns.stop();
    }),
    runs(25, 250),
  );
});
