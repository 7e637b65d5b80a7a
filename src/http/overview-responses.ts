/** Converts the overview lists to the types of the interface. */
import type * as api from '../api/types.ts';
import type { MinuteCounts } from '../core/measures.ts';
import { ACTIONS } from '../core/policy.ts';
import type { AttentionItem } from '../vault/attention.ts';
import type { AccessMatrix } from '../vault/matrix.ts';
import type { SeenNode } from '../vault/nodes.ts';
import type { TreeLevel } from '../vault/tree.ts';
import { toTimestamp } from './serialize.ts';

export const toMatrixResponse = (matrix: AccessMatrix): api.Matrix => ({
  agents: matrix.agents.map((name) => ({ name })),
  agents_total: matrix.agentsTotal,
  paths: [...matrix.paths],
  paths_total: matrix.pathsTotal,
  actions: [...ACTIONS],
  decisions: matrix.decisions.map(({ allowed, policyName, reason }) => ({ allowed, policy_name: policyName, reason })),
  cells: matrix.cells as number[][][],
});

export const toTreeResponse = (prefix: string, { entries, next }: TreeLevel): api.Tree => ({
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

export const toAttentionResponse = ({ since, ...item }: AttentionItem): api.AttentionItem => ({
  ...item,
  since: since === null ? null : toTimestamp(since),
});

export const toActivityResponse = ({ at, ...counts }: MinuteCounts): api.ActivityMinute => ({
  at: toTimestamp(at),
  ...counts,
});

export const toNodeResponse = (node: SeenNode): api.NodeResponse => ({
  name: node.name,
  version: node.version,
  started_at: toTimestamp(node.startedAt),
  status: node.status,
  is_self: node.isSelf,
  seen_at: toTimestamp(node.seenAt),
  newest_seq: node.newestSeq,
});
