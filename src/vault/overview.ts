/** The parts of the overview that are in memory: what needs attention, and the latency of this node. */
import type { Context } from '../core/operation.ts';
import { readOverview } from '../core/operations/overview.ts';
import type { AttentionList } from './attention/attention.ts';
import type { NodeFacts } from './node-facts.ts';
import type { Vault } from './vault.ts';

export async function readAttention(vault: Vault, context: Context): Promise<AttentionList> {
  await vault.ledger.submit(readOverview(context));
  return vault.attention.read();
}

export async function readLatency(vault: Vault, context: Context): Promise<ReturnType<NodeFacts['latency']>> {
  await vault.ledger.submit(readOverview(context));
  return vault.node.latency();
}
