/** Lists leases, and counts the leases of bulk revocations. SOURCE: docs/decisions.md, "Leases". */

import type { ActorName } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import type { PageRequest } from '../../core/page.ts';
import type { CredentialPath } from '../../core/path.ts';
import { countLeases, countRevokedBy, NEWEST_LEASE, listLeases as readLeasePage } from '../../store/lease-lists.ts';
import { countFrom, type Listing, readListing, sliceListing } from '../paging.ts';
import type { Vault } from '../vault.ts';
import type { Lease, LeaseStatus } from './lease.ts';
import { listLeases as list, type RevokeManyRequest, revokeLeases as revokeMany } from './lease-operations.ts';

export interface LeaseFilter {
  readonly agentName: ActorName | null;
  readonly path: CredentialPath | null;
  readonly status: LeaseStatus | null;
}

/** Newest first; the leases of the agent, or all for the administrator. */
export async function listLeases(
  vault: Vault,
  context: Context,
  filter: LeaseFilter,
  page: PageRequest | null,
  signal: AbortSignal,
): Promise<Listing<Lease> & { now: number }> {
  const { agentId, now } = await vault.ledger.read(list(context));
  const own = ownName(context);
  // The store finds leases by agent name; the id excludes those of an earlier agent with that name.
  if (own !== null && filter.agentName !== null && filter.agentName !== own) return { ...sliceListing([], page), now };
  const query = { ...filter, agentName: own ?? filter.agentName, agentId, now };
  const { store, scanTurns } = vault;
  const source = {
    decideAgain: () => vault.ledger.read(list(context)),
    start: NEWEST_LEASE,
    list: (beforeSeq: number, limit: number) => store.run(readLeasePage(store.dialect, query, beforeSeq, limit)),
    count: (beforeSeq: number, atMost: number) => store.run(countLeases(store.dialect, query, beforeSeq, atMost)),
  };
  const listing = await readListing(page, source, scanTurns.readerOf(context, signal));
  return { ...listing, now };
}

function ownName({ auth }: Context): ActorName | null {
  return auth.kind === 'session' ? auth.agentName : null;
}

/**
 * Returns the number of revoked leases. An agent that names no agent revokes its own. The leases are counted in steps
 * after the commit, so that no batch waits for the count; the leases that a bulk revocation ended do not change
 * afterwards.
 */
export async function revokeLeases(
  vault: Vault,
  context: Context,
  request: RevokeManyRequest,
  signal: AbortSignal,
): Promise<number> {
  const agentName = request.agentName ?? ownName(context);
  const revocation = await vault.ledger.submit(revokeMany(context, { ...request, agentName }));
  if (revocation === null) return 0;
  const ended = { revocation, agentName };
  const source = {
    count: (beforeSeq: number) => vault.store.run(countRevokedBy(vault.store.dialect, ended, beforeSeq)),
  };
  const { count } = await countFrom(revocation.seq, source, signal);
  return count;
}
