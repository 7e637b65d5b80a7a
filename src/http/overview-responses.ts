/** Converts the overview lists to the types of the interface. */
import type * as api from '../api/types.ts';
import type { MinuteLatency } from '../core/minute-latency.ts';
import { ACTIONS } from '../core/policy.ts';
import type { AttentionList } from '../vault/attention/attention.ts';
import type { AccessMatrix } from '../vault/matrix.ts';
import type { NodeFacts } from '../vault/node-facts.ts';
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

export const toAttentionResponse = ({ isComplete, items }: AttentionList): api.Attention => ({
  complete: isComplete,
  items: items.map(({ kind, subject, text, count, since }) => ({
    kind,
    subject,
    text,
    count,
    since: since === null ? null : toTimestamp(since),
  })),
});

const toMinutes = (minutes: readonly MinuteLatency[]) =>
  minutes.map(({ at, count, p50Ms, p99Ms }) => ({ at: toTimestamp(at), count, p50_ms: p50Ms, p99_ms: p99Ms }));

export const toLatencyResponse = ({ retrieve, use }: ReturnType<NodeFacts['latency']>): api.Latency => ({
  retrieve: toMinutes(retrieve),
  use: toMinutes(use),
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
