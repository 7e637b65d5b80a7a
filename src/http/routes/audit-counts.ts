/** Rows of the route table: counts of log entries. SOURCE: docs/api.md, "Counting entries". */

import { AuditCounts, AuditCountsQuery, AuditFacets, AuditFacetsQuery } from '../../api/audit.ts';
import { MAX_BUCKETS } from '../../api/fields.ts';
import { invalidRequest } from '../../core/errors.ts';
import { parseTimestamp } from '../../core/timestamp.ts';
import { countFacets, countOverTime } from '../../vault/audit-counts.ts';
import { toAuditFilter, toEntryBounds } from '../audit-filter.ts';
import { type Route, route } from '../route.ts';
import { toTimestamp } from '../serialize.ts';

export const auditCountRoutes: readonly Route[] = [
  route({
    id: 'countAuditFacets',
    method: 'GET',
    path: '/api/v1/audit/facets',
    summary: 'Count the matching audit entries by event, result and agent.',
    who: 'admin',
    adminEvent: 'audit.list',
    query: AuditFacetsQuery,
    data: AuditFacets,
    showsLog: true,
    async handle({ vault, context, query }) {
      const facets = await countFacets(vault, context, { ...toAuditFilter(query), ...toEntryBounds(query) });
      return {
        data: {
          counted: facets.counted,
          complete: facets.isComplete,
          event_type: facets.eventTypes,
          result: facets.results,
          agent_name: facets.agentNames,
        },
      };
    },
  }),
  route({
    id: 'countAuditEntries',
    method: 'GET',
    path: '/api/v1/audit/counts',
    summary: 'Count the matching audit entries over time.',
    who: 'admin',
    adminEvent: 'audit.list',
    query: AuditCountsQuery,
    data: AuditCounts,
    showsLog: true,
    async handle({ vault, context, query }) {
      const since = parseTimestamp(query.since, 'since', 'up');
      const until = query.until === undefined ? vault.clock.now() : parseTimestamp(query.until, 'until', 'down');
      const stepMs = query.step * 1000;
      if (until < since) throw invalidRequest('until', 'must not be before since');
      if (Math.floor((until - since) / stepMs) >= MAX_BUCKETS) {
        throw invalidRequest('step', `must be longer: at most ${MAX_BUCKETS} steps from since to until`);
      }
      const counts = await countOverTime(vault, context, { ...toAuditFilter(query), since, until, stepMs });
      return {
        data: {
          since: toTimestamp(since),
          until: toTimestamp(until),
          step: query.step,
          complete: counts.isComplete,
          counted_from: toTimestamp(counts.countedFrom),
          buckets: counts.buckets.map((bucket) => ({ ...bucket, at: toTimestamp(bucket.at) })),
        },
      };
    },
  }),
];
