/** Credentials: retrieving, storing, listing, deleting. SOURCE: interface 4.1. */
import type { CountedCredential, Credential } from '../core/credential.ts';
import type { CredentialType } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { list, type Metadata, readMetadata, remove, type StoreRequest, store } from '../core/operations/credentials.ts';
import { withIdempotency } from '../core/operations/idempotent.ts';
import { type Retrieved, type RetrieveRequest, retrieve } from '../core/operations/retrieve.ts';
import type { CredentialPath } from '../core/path.ts';
import { Secret } from '../core/secret.ts';
import { newCredentialId, newLeaseId } from '../crypto/random.ts';
import { FIRST_CREDENTIAL } from '../store/queries.ts';
import { withBudget } from './agent-budgets.ts';
import { type Listing, type Page, readListing } from './paging.ts';
import type { Vault } from './vault.ts';

export async function retrieveCredential(
  vault: Vault,
  context: Context,
  request: Omit<RetrieveRequest, 'leaseId'>,
): Promise<Retrieved & { value: Secret }> {
  const operation = retrieve(context, { ...request, leaseId: newLeaseId() });
  const { ledger, budgets, clock } = vault;
  const work = () => ledger.submit(operation);
  const { reply, value } = await withBudget(budgets.leases, context, 1, clock.now(), work);
  return { ...reply, value: value ?? new Secret('') };
}

export async function storeCredential(
  vault: Vault,
  context: Context,
  request: Omit<StoreRequest, 'newId'>,
): Promise<Credential> {
  const operation = store(context, { ...request, newId: newCredentialId() });
  const { ledger, budgets, clock } = vault;
  const bytes = Buffer.byteLength(request.value.reveal());
  const work = () => ledger.submit(withIdempotency(context, operation));
  return (await withBudget(budgets.storedBytes, context, bytes, clock.now(), work)).reply;
}

export async function deleteCredential(vault: Vault, context: Context, path: CredentialPath): Promise<void> {
  await vault.ledger.submit(remove(context, path));
}

export interface MetadataWithCount extends Metadata {
  readonly credential: CountedCredential;
}

/** Decided in a turn, and counted behind it. */
export async function readCredentialMetadata(
  vault: Vault,
  context: Context,
  path: CredentialPath,
): Promise<MetadataWithCount> {
  const { credential, versions } = (await vault.ledger.submit(readMetadata(context, path))).reply;
  const accessCount = await vault.store.readAccessCount(credential.id);
  return { credential: { ...credential, accessCount }, versions };
}

/** Just the paths that the caller has a `list` grant on, by path. */
export async function listCredentials(
  vault: Vault,
  context: Context,
  filter: { type: CredentialType | null },
  page: Page | null,
): Promise<Listing<CountedCredential>> {
  const { reply: ranges } = await vault.ledger.submit(list(context));
  const query = { ranges, type: filter.type };
  return readListing(page, {
    start: FIRST_CREDENTIAL,
    list: (from, limit) => vault.store.listCredentials(query, from, limit),
    count: (from, atMost) => vault.store.countCredentials(query, from, atMost),
  });
}
