/**
 * Use leases with a token, which is accepted instead of a session at base URLs only.
 * SOURCE: docs/api.md, "Base URL"; docs/decisions.md, "Brokered use".
 */

import type { AuthContext } from '../../core/identity.ts';
import type { Context } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { hashToken, newUseToken, newUseTokenNonce } from '../../crypto/tokens.ts';
import { ApiError } from '../../engine/errors.ts';
import { withBudget } from '../../ledger/budgets.ts';
import { readTargetBinding } from '../../store/vault-metadata.ts';
import { findService } from '../catalogue/catalogue.ts';
import type { ServiceDefinition } from '../catalogue/definition.ts';
import { tokenPrefix } from '../catalogue/sdk-environment.ts';
import type { Secret } from '../credentials/credential.ts';
import { type Lease, statusOf } from '../leases/lease.ts';
import { authenticate, type Vault } from '../vault.ts';
import type { BaseUrlRequest } from './base-url.ts';
import { findIssuedLease, type RequestOrigin, rejectMisuse } from './misuse.ts';
import type { Placement } from './target.ts';
import { isUseToken } from './token-form.ts';
import { issueUseLease, type TokenOwner, type UseLeaseRequest } from './use-lease-operations.ts';

export interface NewUseLease {
  readonly lease: Lease;
  readonly token: Secret;
  /** The catalogue's service whose targets the credential has; null if none. */
  readonly service: ServiceDefinition | null;
}

/** Issues a use lease. It is charged as a retrieval. */
export function newUseLease(
  vault: Vault,
  context: Context,
  request: Omit<UseLeaseRequest, 'tokenHashOf'>,
): Promise<NewUseLease> {
  const { ledger, keys, budgets, clock } = vault;
  const nonce = newUseTokenNonce();
  const tokenOf = ({ agentId, path, service }: TokenOwner): Secret => {
    const definition = service === null ? null : findService(service);
    return newUseToken(keys.row, definition === null ? '' : tokenPrefix(definition), nonce, [agentId, path]);
  };
  const operation = issueUseLease(context, {
    ...request,
    tokenHashOf: (owner) => hashToken(tokenOf(owner).reveal()),
  });
  return withBudget(budgets.leases, context, 1, clock.now(), async () => {
    const { lease, service } = await ledger.submit(operation);
    const token = tokenOf({ ...lease, service });
    return { lease, token, service: service === null ? null : findService(service) };
  });
}

export interface BaseUrlCall extends RequestOrigin {
  readonly path: CredentialPath;
  readonly request: BaseUrlRequest;
}

/**
 * As `authenticate`, for a request to a base URL: accepts the token of a use lease too, and not the administrator's.
 * `call` is null if the base URL is malformed.
 * @throws as `authenticate`; LEASE_ENDED; ACCESS_DENIED for a lease of another credential, after it was recorded
 */
export function authenticateUse(
  vault: Vault,
  token: string,
  call: () => BaseUrlCall | null,
): AuthContext | (() => Promise<AuthContext>) {
  if (isUseToken(token)) return () => authenticateLease(vault, token, call());
  const found = authenticate(vault, token);
  if (typeof found === 'function') return async () => rejectPeople(await found());
  return rejectPeople(found);
}

function rejectPeople(found: AuthContext): AuthContext {
  if (found.kind === 'session' || found.kind === 'lease') return found;
  throw new ApiError(
    'UNAUTHENTICATED',
    "A base URL takes the token of an agent's session or a use lease, not the administrator's.",
  );
}

async function authenticateLease(vault: Vault, token: string, call: BaseUrlCall | null): Promise<AuthContext> {
  const { ledger, clock } = vault;
  const lease = await findIssuedLease(vault, token);
  if (lease === null) throw unknownToken();
  // Another node may have just registered the agent.
  if (ledger.memory.control.agentById(lease.agentId) === null) await ledger.refresh();
  // ORDER: before the status, because the token of an ended lease has left its program too.
  if (call !== null && call.path !== lease.path) {
    const { path, request, ...origin } = call;
    await rejectMisuse(vault, lease, { auth: null, origin, place: { kind: 'base URL', path, request } });
  }
  const agent = ledger.memory.control.agentById(lease.agentId);
  if (agent === null) throw unknownToken();
  if (statusOf(lease, clock.now()) !== 'active')
    throw new ApiError('LEASE_ENDED', 'The use lease has ended. Ask for another one.');
  const auth: AuthContext = { kind: 'lease', tokenHash: hashToken(token), agentName: agent.name };
  ledger.assertCapacity(auth);
  return auth;
}

const unknownToken = (): ApiError => new ApiError('UNAUTHENTICATED', 'The token is not valid.');

/** The place of the credential in a request, at which a caller may put its token; null without targets. */
export async function findPlacement({ store }: Vault, path: CredentialPath): Promise<Placement | null> {
  const binding = await store.run(readTargetBinding(path), 'urgent');
  return binding?.placement ?? null;
}
