/** The schemas of the overview lists. SOURCE: docs/api.md, "Overview" and "Counting entries". */
import { ATTENTION_KINDS } from '../core/attention.ts';
import * as fields from './fields.ts';
import { Type } from './schema.ts';

const { nullable, object, whole, word, NullableCount, NullableText, NullableTimestamp, Text, Timestamp } = fields;

const complete = (what: string) => Type.Boolean({ description: `Whether ${what}.` });

export const FacetCount = object({ value: Text, count: whole(1) });
const facet = Type.Array(FacetCount, { description: 'Most frequent first, at most 50.' });
export const AuditFacets = object({
  counted: whole(0),
  complete: complete('all matching entries were counted, and not only the newest'),
  event_type: facet,
  result: facet,
  agent_name: facet,
});
export const CountBucket = object({
  at: Type.String({ ...Timestamp, description: 'The beginning of the bucket.' }),
  retrievals: whole(0),
  uses: whole(0),
  denials: whole(0),
  errors: whole(0),
  entries: whole(0, { description: 'All matching entries.' }),
});
export const AuditCounts = object({
  since: Timestamp,
  until: Timestamp,
  step: whole(1),
  complete: complete('all matching entries were counted, and not only the newest'),
  counted_from: Type.String({ ...Timestamp, description: 'From this time on all matching entries were counted.' }),
  buckets: Type.Array(CountBucket),
});

export const MatrixDecision = object({ allowed: Type.Boolean(), policy_name: NullableText, reason: Text });
export const MatrixAgent = object({ name: fields.AgentName });
export const Matrix = object({
  agents: Type.Array(MatrixAgent),
  agents_total: whole(0),
  paths: Type.Array(fields.Path),
  paths_total: whole(0),
  actions: Type.Array(fields.Action),
  decisions: Type.Array(MatrixDecision, { description: 'Each different decision once.' }),
  cells: Type.Array(Type.Array(Type.Array(whole(0))), {
    description: 'By agent, path and action: the index of the decision in `decisions`.',
  }),
});

export const TreeEntry = object({
  name: Type.String({ description: 'The last segment of the path.' }),
  kind: word(['directory', 'credential']),
  path: fields.Path,
  credentials: Type.Optional(
    nullable<number>(whole(1, { description: 'Below a directory; null where there are too many to count.' })),
  ),
  type: Type.Optional(fields.CredentialType),
  updated_at: Type.Optional(Timestamp),
});
export const Tree = object({
  prefix: Type.String({ description: 'Empty for the first level.' }),
  entries: Type.Array(TreeEntry),
  next: nullable<string>(Type.String({ description: '`after` of the next page; null at the end.' })),
});

export const SearchResult = object({
  kind: word(['credential', 'agent', 'policy', 'operator']),
  name: Text,
  description: Text,
});
export const SearchResults = object({
  complete: complete('every name was compared'),
  results: Type.Array(SearchResult),
});

export const AttentionItem = object({
  kind: word(ATTENTION_KINDS),
  subject: Type.String({ description: 'A path, `policy:<name>`, `agent:<name>` or `*`.' }),
  text: Type.String({ description: 'What is the case, and what to do.' }),
  count: NullableCount,
  since: NullableTimestamp,
});
export const Attention = object({
  complete: complete('everything was examined'),
  items: Type.Array(AttentionItem),
});

const Milliseconds = Type.Number({ minimum: 0 });
export const LatencyMinute = object({ at: Timestamp, count: whole(1), p50_ms: Milliseconds, p99_ms: Milliseconds });
export const Latency = object({ retrieve: Type.Array(LatencyMinute), use: Type.Array(LatencyMinute) });

export const Node = object({
  name: Type.String({ description: 'Host name and process id.' }),
  version: Text,
  started_at: Timestamp,
  status: NullableText,
  is_self: Type.Boolean(),
  seen_at: Timestamp,
  newest_seq: NullableCount,
});
