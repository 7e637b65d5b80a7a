/**
 * The panic: ends everything that an agent, or all agents, hold, and says which values are to be rotated; and before
 * it, how much it would end. SOURCE: docs/decisions.md, "Exposure". ORDER: leases and sessions end in one batch,
 * brokered requests are aborted when it is durable, and then everything is counted.
 */

import type { AgentId, AgentName } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import { countLeases, countRevokedBy, NEWEST_LEASE } from '../../store/lease-lists.ts';
import type { Store } from '../../store/port.ts';
import type { ResultOf } from '../../store/statement.ts';
import { listSessions, type SessionCursor } from '../../store/vault-metadata.ts';
import { countFrom, STEP_ROWS, yieldToEventLoop } from '../paging.ts';
import type { Vault } from '../vault.ts';
import { readExposures } from './exposure.ts';
import { panic as end, readHeld as readHeldNow } from './exposure-operations.ts';
import type { HeldCounts, PanicResult } from './exposure-record.ts';

/** Counts the leases, sessions and brokered requests that a panic would end now. */
export async function readHeld(
  vault: Vault,
  context: Context,
  agentName: AgentName | null,
  signal: AbortSignal,
): Promise<HeldCounts> {
  const { ledger, store, uses, scanTurns } = vault;
  const { now, agentId } = await ledger.read(readHeldNow(context, agentName));
  const query = { agentId, agentName, path: null, status: 'active', now } as const;
  const source = {
    count: (beforeSeq: number, atMost: number) => store.run(countLeases(store.dialect, query, beforeSeq, atMost)),
  };
  const endedBefore = (id: AgentId) =>
    agentId === null || agentId === id ? ledger.memory.control.agentById(id)?.sessionsEndedAt : undefined;
  return scanTurns.readerOf(context, signal).inTurn(async () => {
    const leases = await countFrom(NEWEST_LEASE, source, signal);
    const sessions = await countSessions(store, now, endedBefore, signal);
    return { leases: leases.count, sessions, streams: uses.count(agentName) };
  });
}

/** The counting ends when the client disconnects; the panic stays in effect. */
export async function panic(
  vault: Vault,
  context: Context,
  agentName: AgentName | null,
  signal: AbortSignal,
): Promise<PanicResult> {
  const { ledger, store, uses } = vault;
  const panicked = await ledger.submit(end(context, agentName));
  const streams = uses.abort(agentName);
  const { revocation } = panicked;
  const endedBefore = new Map(panicked.endedBefore);
  const source = {
    count: (beforeSeq: number) => store.run(countRevokedBy(store.dialect, { revocation, agentName }, beforeSeq)),
  };
  const leases = await countFrom(revocation.seq, source, signal);
  const sessions = await countSessions(store, revocation.revokedAt, (id) => endedBefore.get(id), signal);
  const exposures = await readExposures(store, { path: null, agentName }, revocation.revokedAt, signal);
  return {
    leases: leases.count,
    sessions,
    streams,
    rotate: exposures.filter(({ seenBy }) => seenBy.length > 0),
    usedOnly: exposures.filter(({ seenBy }) => seenBy.length === 0),
  };
}

/**
 * Those that had not expired at the time `now`. `endedBefore` returns when an earlier panic ended the sessions of the
 * agent, null if none did, and undefined for an agent whose sessions do not count.
 */
async function countSessions(
  store: Store,
  now: number,
  endedBefore: (agentId: AgentId) => number | null | undefined,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  let after: SessionCursor | undefined = { expiresAt: now + 1, tokenHash: '' };
  while (after !== undefined) {
    await yieldToEventLoop(signal);
    const rows: ResultOf<typeof listSessions> = await store.run(listSessions(after, STEP_ROWS));
    for (const { agentId, issuedAt } of rows) {
      const earlier = endedBefore(agentId);
      if (earlier !== undefined && issuedAt <= now && issuedAt > (earlier ?? -1)) count += 1;
    }
    after = rows.length < STEP_ROWS ? undefined : rows.at(-1);
  }
  return count;
}
