/** Rows of the route table: the overview. SOURCE: docs/api.md, "Overview". */
import { Type } from 'typebox';
import {
  MATRIX_LIMITS,
  MAX_AGENT_PREFIX_LENGTH,
  MAX_SEARCH_LENGTH,
  SEARCH_LIMITS,
  TREE_LIMITS,
} from '../../api/fields.ts';
import { Matrix, MatrixQuery, SearchQuery, SearchResults, Tree, TreeQuery } from '../../api/overview.ts';
import { replySchema } from '../../api/resource-schemas.ts';
import type { Matrix as MatrixResponse, Tree as TreeResponse } from '../../api/types.ts';
import { parsePath } from '../../core/path.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import { readAdvisories } from '../../vault/overview/advisories.ts';
import { readTree, type TreeLevel } from '../../vault/overview/credential-tree.ts';
import { type AccessMatrix, readMatrix } from '../../vault/overview/matrix.ts';
import { listNodes, readActivity } from '../../vault/overview/nodes.ts';
import { ActivityMinute, AttentionItem, Node } from '../../vault/overview/overview.ts';
import { search } from '../../vault/overview/search.ts';
import { ACTIONS } from '../../vault/policies/policy.ts';
import { type Route, route } from '../route.ts';

const parseAgentPrefix = (text = ''): string => {
  if (text.length <= MAX_AGENT_PREFIX_LENGTH) return text;
  throw invalidRequest('agent', `must have at most ${MAX_AGENT_PREFIX_LENGTH} characters`);
};
const parsePrefix = (text: string | undefined) =>
  text === undefined || text === '' ? null : parsePath(text, 'prefix');

export const overviewRoutes: readonly Route[] = [
  route({
    id: 'readMatrix',
    method: 'GET',
    path: '/api/v1/matrix',
    summary: 'Decide every action of a page of agents on a page of credentials, with the reasons.',
    permission: 'policy.matrix',
    query: MatrixQuery,
    data: Matrix,
    async handle({ vault, context, query, listSignal }) {
      const { agents, paths } = MATRIX_LIMITS;
      const request = {
        agents: { limit: query.agent_limit ?? agents.byDefault, offset: query.agent_offset ?? 0 },
        paths: { limit: query.path_limit ?? paths.byDefault, offset: query.path_offset ?? 0 },
        agentPrefix: parseAgentPrefix(query.agent),
        prefix: parsePrefix(query.prefix),
      };
      return { data: toMatrixResponse(await readMatrix(vault, context, request, listSignal())) };
    },
  }),
  route({
    id: 'readTree',
    method: 'GET',
    path: '/api/v1/tree',
    summary: 'List one level of the tree of credential paths.',
    permission: 'credential.tree',
    query: TreeQuery,
    data: Tree,
    async handle({ vault, context, query, listSignal }) {
      const prefix = parsePrefix(query.prefix);
      const { limit = TREE_LIMITS.byDefault, after = null } = query;
      const level = await readTree(vault, context, { prefix, limit, after }, listSignal());
      return { data: toTreeResponse(prefix ?? '', level) };
    },
  }),
  route({
    id: 'search',
    method: 'GET',
    path: '/api/v1/search',
    summary: 'Search the names of credentials, agents, policies and operators.',
    permission: 'service.read',
    query: SearchQuery,
    data: SearchResults,
    async handle({ vault, context, query, listSignal }) {
      const { q, limit = SEARCH_LIMITS.byDefault } = query;
      if (q.length < 1 || q.length > MAX_SEARCH_LENGTH) {
        throw invalidRequest('q', `must be 1 to ${MAX_SEARCH_LENGTH} characters`);
      }
      const { isComplete, results } = await search(vault, context, q, limit, listSignal());
      return { data: { complete: isComplete, results } };
    },
  }),
  route({
    id: 'readAdvisories',
    method: 'GET',
    path: '/api/v1/attention',
    summary: 'List what an operator should look at.',
    permission: 'service.read',
    data: Type.Array(replySchema(AttentionItem)),
    async handle({ vault, context, listSignal }) {
      return { data: (await readAdvisories(vault, context, listSignal())).map(AttentionItem.toReply) };
    },
  }),
  route({
    id: 'readActivity',
    method: 'GET',
    path: '/api/v1/activity',
    summary: 'Count the retrievals, brokered requests and denials of this node in each minute of the last hour.',
    permission: 'service.read',
    data: Type.Array(replySchema(ActivityMinute)),
    handle: async ({ vault, context }) => ({ data: (await readActivity(vault, context)).map(ActivityMinute.toReply) }),
  }),
  route({
    id: 'listNodes',
    method: 'GET',
    path: '/api/v1/nodes',
    summary: 'List this node, and the others that are connected to the same database.',
    permission: 'service.read',
    data: Type.Array(replySchema(Node)),
    handle: async ({ vault, context }) => ({ data: (await listNodes(vault, context)).map(Node.toReply) }),
  }),
];

const toMatrixResponse = (matrix: AccessMatrix): MatrixResponse => ({
  agents: matrix.agents.map((name) => ({ name })),
  agents_total: matrix.agentsTotal,
  paths: [...matrix.paths],
  paths_total: matrix.pathsTotal,
  actions: [...ACTIONS],
  decisions: matrix.decisions.map(({ allowed, policyName, reason }) => ({ allowed, policy_name: policyName, reason })),
  cells: matrix.cells as number[][][],
});

const toTreeResponse = (prefix: string, { entries, next }: TreeLevel): TreeResponse => ({
  prefix,
  entries: entries.map(({ name, path, directory, credential }) => ({
    name,
    kind: directory === null ? ('credential' as const) : ('directory' as const),
    path,
    ...(directory ?? {}),
    ...(credential === null ? {} : { type: credential.type, updated_at: toTimestamp(credential.updatedAt) }),
  })),
  next,
});
