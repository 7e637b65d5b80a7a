/** Rows of the route table: the overview. SOURCE: docs/api.md, "Overview". */
import { Type } from 'typebox';
import { replySchema } from '../../api/resource-schemas.ts';
import { Tree } from '../../api/responses.ts';
import type { Tree as TreeResponse } from '../../api/types.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import { readAdvisories } from '../../vault/overview/advisories.ts';
import { readTree, type TreeLevel } from '../../vault/overview/credential-tree.ts';
import { readMatrix } from '../../vault/overview/matrix.ts';
import { listNodes, readActivity } from '../../vault/overview/nodes.ts';
import {
  ActivityMinute,
  AttentionItem,
  Matrix,
  MatrixQuery,
  Node,
  SearchQuery,
  SearchResults,
  TreeQuery,
} from '../../vault/overview/overview.ts';
import { search } from '../../vault/overview/search.ts';
import { type Route, route, shapedRoute } from '../route.ts';

export const overviewRoutes: readonly Route[] = [
  shapedRoute({
    id: 'readMatrix',
    method: 'GET',
    path: '/api/v1/matrix',
    summary: 'Decide every action of a page of agents on a page of credentials, with the reasons.',
    permission: 'policy.matrix',
    query: MatrixQuery,
    reply: Matrix,
    handle: ({ vault, context, query, listSignal }) => readMatrix(vault, context, query, listSignal()),
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
      return { data: toTreeResponse(query.prefix, await readTree(vault, context, query, listSignal())) };
    },
  }),
  shapedRoute({
    id: 'search',
    method: 'GET',
    path: '/api/v1/search',
    summary: 'Search the names of credentials, agents, policies and operators.',
    permission: 'service.read',
    query: SearchQuery,
    reply: SearchResults,
    handle: ({ vault, context, query, listSignal }) => search(vault, context, query.q, query.limit, listSignal()),
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
