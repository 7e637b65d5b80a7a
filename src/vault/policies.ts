/** Policies and simulation. SOURCE: interface 4.2. */
import { ApiError } from '../core/errors.ts';
import type { AgentName, PolicyName } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { adminRead } from '../core/operations/admin-read.ts';
import { withIdempotency } from '../core/operations/idempotent.ts';
import {
  createPolicy as create,
  deletePolicy as remove,
  replacePolicy as replace,
  type Simulated,
  simulate,
} from '../core/operations/policies.ts';
import type { CredentialPath } from '../core/path.ts';
import type { Policy, PolicyDraft } from '../core/policy.ts';
import { type Listing, type Page, sliceListing } from './paging.ts';
import type { Vault } from './vault.ts';

export async function createPolicy(vault: Vault, context: Context, draft: PolicyDraft): Promise<Policy> {
  return (await vault.ledger.submit(withIdempotency(context, create(context, draft)))).reply;
}

export async function replacePolicy(vault: Vault, context: Context, draft: PolicyDraft): Promise<Policy> {
  return (await vault.ledger.submit(replace(context, draft))).reply;
}

export async function deletePolicy(vault: Vault, context: Context, name: PolicyName): Promise<void> {
  await vault.ledger.submit(remove(context, name));
}

export async function readPolicy(vault: Vault, context: Context, name: PolicyName): Promise<Policy> {
  const operation = adminRead(
    context,
    'policy.read',
    `policy:${name}`,
    ({ control }) => control.policies.get(name) ?? new ApiError('NOT_FOUND', 'The policy does not exist.'),
  );
  return (await vault.ledger.submit(operation)).reply;
}

/** By name. */
export async function listPolicies(vault: Vault, context: Context, page: Page | null): Promise<Listing<Policy>> {
  const operation = adminRead(context, 'policy.list', '*', ({ control }) => control.policies.all());
  return sliceListing((await vault.ledger.submit(operation)).reply, page);
}

export async function simulateAccess(
  vault: Vault,
  context: Context,
  question: { readonly agent: AgentName; readonly path: CredentialPath; readonly action: string },
): Promise<Simulated> {
  return (await vault.ledger.submit(simulate(context, question))).reply;
}
