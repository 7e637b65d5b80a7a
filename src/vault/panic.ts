/**
 * The panic: ends everything that an agent, or all agents, hold, and says which values are to be rotated. SOURCE:
 * docs/decisions.md, "Exposure".
 * ORDER: leases and sessions end in one batch, running uses are cut when it is durable, and then everything is counted.
 */
import type { AgentName } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { panic as end, type Panic } from '../core/operations/exposure.ts';
import type { SessionCursor } from '../store/session-lists.ts';
import type { Store } from '../store/sql-store.ts';
import { readExposures, type VersionExposure } from './exposure.ts';
import { countFrom, STEP_ROWS, yieldToEventLoop } from './paging.ts';
import type { Vault } from './vault.ts';

export interface PanicResult {
  /** How many of each were active. */
  readonly leases: number;
  readonly sessions: number;
  /** Running uses on this node; other nodes cut theirs within a second. */
  readonly streams: number;
  /** The versions that the agent, or any caller, has seen. */
  readonly rotate: readonly VersionExposure[];
  /** Those that were used and never seen. */
  readonly usedOnly: readonly VersionExposure[];
}

export async function panic(vault: Vault, context: Context, agentName: AgentName | null): Promise<PanicResult> {
  const { ledger, store, uses } = vault;
  const panicked = await ledger.submit(end(context, agentName));
  const streams = uses.cut(agentName);
  const { revocation } = panicked;
  const leases = await countFrom(revocation.seq, {
    count: (beforeSeq) => store.countRevokedBy({ revocation, agentName }, beforeSeq),
  });
  const sessions = await countSessions(store, panicked);
  const exposures = await readExposures(store, { path: null, agentName }, revocation.revokedAt);
  return {
    leases: leases.count,
    sessions,
    streams,
    rotate: exposures.filter(({ seenBy }) => seenBy.length > 0),
    usedOnly: exposures.filter(({ seenBy }) => seenBy.length === 0),
  };
}

/** Those that the panic ended: not those that had expired, or that an earlier panic ended. */
async function countSessions(store: Store, { revocation, endedBefore }: Panic): Promise<number> {
  const { revokedAt } = revocation;
  const before = new Map(endedBefore);
  let count = 0;
  let after: SessionCursor | undefined = { expiresAt: revokedAt + 1, tokenHash: '' };
  while (after !== undefined) {
    await yieldToEventLoop();
    const rows: Awaited<ReturnType<Store['listSessions']>> = await store.listSessions(after, STEP_ROWS);
    for (const { agentId, issuedAt } of rows) {
      const earlier = before.get(agentId);
      if (earlier !== undefined && issuedAt <= revokedAt && issuedAt > (earlier ?? -1)) count += 1;
    }
    after = rows.length < STEP_ROWS ? undefined : rows.at(-1);
  }
  return count;
}
