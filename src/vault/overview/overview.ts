/** The requests and replies of the overview. SOURCE: docs/api.md, "Overview". */
import * as grammar from '../../core/grammars.ts';
import { MAX_PATH_LENGTH, PATH_PART } from '../../core/path.ts';
import { list, record } from '../../engine/compounds.ts';
import { byDefault, nullable, optional, type ValueOf } from '../../engine/field.ts';
import { anyText, boolean, count, integer, MAX_EXACT, oneOf, text, time } from '../../engine/kinds.ts';
import { shape } from '../../engine/resource.ts';
import { ACTIONS } from '../policies/policy.ts';

const AGENT_PREFIX = grammar.ofLength([0, 63], 'must have at most 63 characters');
const PART_OF_NAME = grammar.ofLength([1, 128], 'must be 1 to 128 characters');
const prefix = (description: string) => byDefault('', text({ ...grammar.or('', grammar.path), description }));
const offset = <const W extends string>(wire: W) => byDefault(0, integer({ min: 0, max: MAX_EXACT }, { wire }));
const limit = <const W extends string>(standard: number, max: number, wire: W) =>
  byDefault(standard, integer({ min: 1, max }, { wire }));

export const MatrixQuery = shape('MatrixQuery', {
  agentPrefix: byDefault(
    '',
    text(
      { ...AGENT_PREFIX, description: 'The beginning of names: only these agents; all by default.' },
      { wire: 'agent' },
    ),
  ),
  agentOffset: offset('agent_offset'),
  agentLimit: limit(20, 50, 'agent_limit'),
  prefix: prefix('A path: only it and the credentials below it; all by default.'),
  pathOffset: offset('path_offset'),
  pathLimit: limit(50, 100, 'path_limit'),
});

const policyName = nullable(anyText({ wire: 'policy_name' }));
const DECISION = { allowed: boolean(), policyName, reason: anyText() };
export type MatrixDecision = ValueOf<typeof DECISION>;

export const Matrix = shape('Matrix', {
  agents: list(record({ name: text(grammar.agentName) }, { title: 'MatrixAgent' }), { min: 0 }),
  agentsTotal: count({ wire: 'agents_total' }),
  paths: list(text(grammar.path), { min: 0 }),
  pathsTotal: count({ wire: 'paths_total' }),
  actions: list(oneOf(ACTIONS, { noun: 'action' }), { min: 0 }),
  decisions: list(
    record(DECISION, { title: 'MatrixDecision' }),
    { min: 0 },
    { description: 'Each different decision once.' },
  ),
  cells: list(
    list(list(count(), { min: 0 }), { min: 0 }),
    { min: 0 },
    { description: 'By agent, path and action: the index of the decision in `decisions`.' },
  ),
});
export type Matrix = ValueOf<typeof Matrix.fields>;

export const TreeQuery = shape('TreeQuery', {
  prefix: prefix('A path: the level below it; the first level by default.'),
  limit: limit(100, 1000, 'limit'),
  after: optional(
    anyText(
      { description: 'The `next` of the previous page.' },
      { pattern: `^${PATH_PART}/?$`, minLength: 1, maxLength: MAX_PATH_LENGTH + 1 },
    ),
  ),
});

export const SearchQuery = shape('SearchQuery', {
  q: text({ ...PART_OF_NAME, description: 'A part of a name or path, in any case.' }),
  limit: limit(20, 50, 'limit'),
});
const FOUND = { kind: oneOf(['credential', 'agent', 'policy', 'operator']), name: anyText(), description: anyText() };
export type FoundName = ValueOf<typeof FOUND>;
export const SearchResults = shape('SearchResults', {
  isComplete: boolean({ wire: 'complete', description: 'Whether every name was compared.' }),
  results: list(record(FOUND, { title: 'SearchResult' }), { min: 0 }),
});
export type SearchResults = ValueOf<typeof SearchResults.fields>;

const ADVISORY = {
  kind: oneOf(['denied_repeatedly', 'lease_expiring', 'credential_unused']),
  /** The resource, in the form of audit entries. */
  subject: anyText({ description: 'A path, `agent:<name>` or `operator:<name>`.' }),
  text: anyText({ description: 'What is the case, and what to do.' }),
  count: nullable(count()),
  since: nullable(time()),
};
export const AttentionItem = shape('AttentionItem', ADVISORY);
export type Advisory = ValueOf<typeof ADVISORY>;

/** `at` is the beginning of the minute. */
export const ActivityMinute = shape('ActivityMinute', {
  at: time(),
  retrievals: count(),
  uses: count(),
  denials: count(),
});

const NODE = {
  name: anyText({ description: 'Host name and process id.' }),
  version: anyText(),
  startedAt: time({ wire: 'started_at' }),
  /** Null for another node, because only the node itself knows its status. `newestSeq` is null for the same reason. */
  status: nullable(anyText()),
  isSelf: boolean({ wire: 'is_self' }),
  seenAt: time({ wire: 'seen_at' }),
  newestSeq: nullable(count({ wire: 'newest_seq' })),
};
export const Node = shape('Node', NODE);
export type SeenNode = ValueOf<typeof NODE>;
