/** Lists and reads approvals, and records the answers of operators. SOURCE: docs/approvals.md. */

import type { ActorName } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import type { PageRequest } from '../../core/page.ts';
import type { CredentialPath } from '../../core/path.ts';
import { sha256Base64 } from '../../crypto/primitives.ts';
import { decryptApprovalRequest } from '../../crypto/value-encryption.ts';
import { isAuthentic } from '../../ledger/authenticated-rows.ts';
import {
  countApprovals,
  findApproval,
  NEWEST_APPROVAL,
  listApprovals as readApprovalPage,
  readApprovalRequest,
} from '../../store/approval-lists.ts';
import { type Listing, readListing, sliceListing } from '../paging.ts';
import type { Vault } from '../vault.ts';
import type { Approval, ApprovalId, ApprovalStatus } from './approval.ts';
import {
  type Answer,
  type ApprovalPlace,
  answerApproval,
  listApprovals as list,
  readApproval as read,
  withdrawApproval,
} from './approval-operations.ts';
import type { ShownCall } from './held-requests.ts';

export interface ApprovalFilter {
  readonly agentName: ActorName | null;
  readonly status: ApprovalStatus | null;
}

/**
 * The approvals of the agent, or all for an operator, newest first. Rows that were altered outside Leasehold are
 * skipped.
 */
export async function listApprovals(
  vault: Vault,
  context: Context,
  filter: ApprovalFilter,
  page: PageRequest | null,
  signal: AbortSignal,
): Promise<Listing<Approval> & { now: number }> {
  const { store, keys, ledger, scanTurns } = vault;
  const { agent, now } = await ledger.read(list(context));
  // An id has one name, so that no index is needed for both.
  if (agent !== null && filter.agentName !== null && filter.agentName !== agent.name) {
    return { ...sliceListing<Approval>([], page), now };
  }
  const whose = agent === null ? { agentId: null } : { agentId: agent.id, agentName: null };
  const query = { ...filter, ...whose, now };
  const source = {
    decideAgain: () => ledger.read(list(context)),
    start: NEWEST_APPROVAL,
    async list(beforeId: string, limit: number) {
      const { rows, next } = await store.run(readApprovalPage(store.dialect, query, beforeId, limit));
      return { rows: rows.filter((row) => isAuthentic(keys.row, 'approval', row)), next };
    },
    count: (beforeId: string, atMost: number) => store.run(countApprovals(store.dialect, query, beforeId, atMost)),
  };
  const listing = await readListing(page, source, scanTurns.readerOf(context, signal));
  return { ...listing, now };
}

export interface ReadApproval {
  readonly approval: Approval;
  readonly request: ShownCall | null;
  readonly now: number;
}

/** Reads an approval with its request, which is null for a retrieval or if it cannot be decrypted. @throws NOT_FOUND */
export async function readApproval(vault: Vault, context: Context, id: ApprovalId): Promise<ReadApproval> {
  const { store, keys, ledger } = vault;
  const { approval, now } = await ledger.read(read(context, await findPlace(vault, id)));
  const encrypted = approval.action === 'use' ? await store.run(readApprovalRequest(id)) : null;
  const text = encrypted === null ? null : decryptApprovalRequest(keys.row, id, encrypted);
  return { approval, request: text === null ? null : (JSON.parse(text) as ShownCall), now };
}

/** @throws NOT_FOUND, ACCESS_DENIED, APPROVAL_ENDED, ALREADY_EXISTS, INVALID_REQUEST */
export async function answer(
  vault: Vault,
  context: Context,
  id: ApprovalId,
  given: Answer,
): Promise<{ approval: Approval; now: number }> {
  const operation = answerApproval(context, await findPlace(vault, id), given, sha256Base64);
  return { approval: await vault.ledger.submit(operation), now: vault.clock.now() };
}

/** @throws NOT_FOUND, APPROVAL_ENDED */
export async function withdraw(vault: Vault, context: Context, id: ApprovalId): Promise<void> {
  await vault.ledger.submit(withdrawApproval(context, await findPlace(vault, id)));
}

/** An id without a row is given a path without a credential, so that the decision rejects and records it. */
async function findPlace({ store }: Vault, id: ApprovalId): Promise<ApprovalPlace> {
  return (await store.run(findApproval(id), 'urgent')) ?? { id, path: '-' as CredentialPath };
}
