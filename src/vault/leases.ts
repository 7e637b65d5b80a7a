/** Leases. SOURCE: decisions, "Leases". */
import type { Lease, LeaseStatus } from '../core/lease.ts';
import type { ActorName, LeaseId } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { withIdempotency } from '../core/operations/idempotent.ts';
import {
  listLeases as list,
  type RevokeManyRequest,
  readLease as read,
  renewLease as renew,
  revokeLease as revoke,
  revokeLeases as revokeMany,
} from '../core/operations/leases.ts';
import type { CredentialPath } from '../core/path.ts';
import { NEWEST_LEASE } from '../store/queries.ts';
import { countFrom, type Listing, type Page, readListing, sliceListing } from './paging.ts';
import type { Vault } from './vault.ts';

/** A lease as it is told: its status depends on when that is. */
export interface LeaseAt {
  readonly lease: Lease;
  readonly now: number;
}

export interface LeaseFilter {
  readonly agentName: ActorName | null;
  readonly path: CredentialPath | null;
  readonly status: LeaseStatus | null;
}

/** Newest first; an agent's own, or everybody's for the administrator. */
export async function listLeases(
  vault: Vault,
  context: Context,
  filter: LeaseFilter,
  page: Page | null,
): Promise<Listing<Lease> & { now: number }> {
  const { agentId, now } = (await vault.ledger.submit(list(context))).reply;
  const own = ownName(context);
  // The name of an agent goes with its id for ever; by names leases are found.
  if (own !== null && filter.agentName !== null && filter.agentName !== own) return { ...sliceListing([], page), now };
  const query = { ...filter, agentName: own ?? filter.agentName, agentId, now };
  const listing = await readListing(page, {
    start: NEWEST_LEASE,
    list: (beforeSeq, limit) => vault.store.listLeases(query, beforeSeq, limit),
    count: (beforeSeq, atMost) => vault.store.countLeases(query, beforeSeq, atMost),
  });
  return { ...listing, now };
}

function ownName({ authentication }: Context): ActorName | null {
  return authentication.kind === 'session' ? authentication.agentName : null;
}

export async function readLease(vault: Vault, context: Context, id: LeaseId): Promise<LeaseAt> {
  return (await vault.ledger.submit(read(context, id))).reply;
}

export async function renewLease(vault: Vault, context: Context, id: LeaseId): Promise<LeaseAt> {
  return (await vault.ledger.submit(withIdempotency(context, renew(context, id)))).reply;
}

export async function revokeLease(vault: Vault, context: Context, id: LeaseId): Promise<void> {
  await vault.ledger.submit(revoke(context, id));
}

/**
 * How many were revoked. An agent that names nobody means itself. They are counted when they are revoked already, in steps: what
 * a mark ended stays the same, and no turn has to wait for a look at them all.
 */
export async function revokeLeases(vault: Vault, context: Context, request: RevokeManyRequest): Promise<number> {
  const agentName = request.agentName ?? ownName(context);
  const operation = revokeMany(context, { ...request, agentName });
  const { reply: mark } = await vault.ledger.submit(withIdempotency(context, operation));
  if (mark === null) return 0;
  const ended = { mark, agentName };
  const { count } = await countFrom(mark.seq, { count: (beforeSeq) => vault.store.countRevokedBy(ended, beforeSeq) });
  return count;
}
