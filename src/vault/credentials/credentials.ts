/**
 * Operations on credentials that need a budget or the store in addition to the ledger. SOURCE: docs/api.md,
 * "Credentials".
 */

import type { CredentialType } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import type { PageRequest } from '../../core/page.ts';
import type { CredentialPath } from '../../core/path.ts';
import { withBudget } from '../../ledger/budgets.ts';
import {
  type CredentialCursor,
  countCredentials,
  FIRST_CREDENTIAL,
  listCredentials as readCredentialPage,
} from '../../store/credential-lists.ts';
import { type ApprovalAttempt, isUndecided } from '../approvals/approval-requests.ts';
import { heldRetrieval } from '../approvals/held-requests.ts';
import { type Listing, readListing } from '../paging.ts';
import type { Vault } from '../vault.ts';
import type { CountedCredential, Credential } from './credential.ts';
import { list, listedRanges, type Metadata, type NewValue, readMetadata, store } from './credential-operations.ts';
import { type RetrievalResult, type RetrieveRequest, retrieve } from './retrieve.ts';

/** Approximate size of the rows of a stored value without its texts. WHY: small values would cost almost nothing. */
const ROWS_BYTES = 1024;

export function retrieveCredential(
  vault: Vault,
  context: Context,
  request: RetrieveRequest,
  disconnectSignal?: () => AbortSignal,
): Promise<RetrievalResult> {
  const { ledger, approvals, budgets, clock } = vault;
  const attempt = (ask: ApprovalAttempt | null) => retrieve(context, request, ask);
  const work = async (): Promise<RetrievalResult> => {
    const reply = await ledger.submit(attempt(null));
    if (!isUndecided(reply)) return reply;
    return approvals.hold(context, reply, attempt, heldRetrieval(request), disconnectSignal?.());
  };
  return withBudget(budgets.leases, context, 1, clock.now(), work);
}

export function storeCredential(vault: Vault, context: Context, request: NewValue): Promise<Credential> {
  const { ledger, budgets, clock } = vault;
  const { path, value, description } = request;
  const bytes = Buffer.byteLength(value.reveal());
  const work = () => ledger.submit(store(context, request), bytes);
  const charged = bytes + Buffer.byteLength(description ?? '') + path.length + ROWS_BYTES;
  return withBudget(budgets.storedBytes, context, charged, clock.now(), work);
}

export interface MetadataWithCount extends Metadata {
  readonly credential: CountedCredential;
}

/** The access count is read after the decision. */
export async function readCredentialMetadata(
  vault: Vault,
  context: Context,
  path: CredentialPath,
): Promise<MetadataWithCount> {
  const { credential, versions } = await vault.ledger.submit(readMetadata(context, path));
  const accessCount = await vault.store.readAccessCount(credential.id);
  return { credential: { ...credential, accessCount }, versions };
}

/** The credentials that the caller may list, sorted by path. */
export async function listCredentials(
  vault: Vault,
  context: Context,
  filter: { type: CredentialType | null },
  page: PageRequest | null,
  signal: AbortSignal,
): Promise<Listing<CountedCredential>> {
  const { ledger, store, scanTurns } = vault;
  const query = { ranges: await ledger.submit(list(context)), type: filter.type };
  const source = {
    async decideAgain() {
      query.ranges = await ledger.read(listedRanges(context));
    },
    start: FIRST_CREDENTIAL,
    list: (from: CredentialCursor, limit: number) => store.run(readCredentialPage(store.dialect, query, from, limit)),
    count: (from: CredentialCursor, atMost: number) => store.run(countCredentials(store.dialect, query, from, atMost)),
  };
  return readListing(page, source, scanTurns.readerOf(context, signal));
}
