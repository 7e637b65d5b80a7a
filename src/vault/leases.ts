/** Leases. SOURCE: decisions, "Leases". */
import type { Lease, LeaseStatus } from '../core/lease.ts';
import type { ActorName, LeaseId } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import {
  listLeases as list,
  type RevokeManyRequest,
  readLease as read,
  renewLease as renew,
  revokeLease as revoke,
  revokeLeases as revokeMany,
} from '../core/operations/leases.ts';
import type { CredentialPath } from '../core/path.ts';
import { type Listing, type Page, readListing } from './listing.ts';
import type { Vault } from './vault.ts';

/** A lease as it is told: its status depends on when that is. */
export interface SeenLease {
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
  const query = { ...filter, agentId, now };
  const listing = await readListing(page, {
    count: () => vault.store.countLeases(query),
    read: (after: Lease | null, offset, limit) =>
      vault.store.listLeases(query, after?.seq ?? Number.MAX_SAFE_INTEGER, offset, limit),
  });
  return { ...listing, now };
}

export async function readLease(vault: Vault, context: Context, id: LeaseId): Promise<SeenLease> {
  return (await vault.ledger.submit(read(context, id))).reply;
}

export async function renewLease(vault: Vault, context: Context, id: LeaseId): Promise<SeenLease> {
  return (await vault.ledger.submit(renew(context, id))).reply;
}

export async function revokeLease(vault: Vault, context: Context, id: LeaseId): Promise<void> {
  await vault.ledger.submit(revoke(context, id));
}

/** How many were revoked. An agent that names nobody means itself. */
export async function revokeLeases(vault: Vault, context: Context, request: RevokeManyRequest): Promise<number> {
  const { presented } = context;
  const own = presented.kind === 'session' ? presented.agentName : null;
  const agentName = request.agentName ?? own;
  return (await vault.ledger.submit(revokeMany(context, { ...request, agentName }))).reply;
}
