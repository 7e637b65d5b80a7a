/**
 * Use leases with a token, which is accepted instead of a session at base URLs only.
 * SOURCE: docs/api.md, "Base URL"; docs/decisions.md, "Brokered use".
 */
import type { Authentication } from '../core/agent.ts';
import { findService } from '../core/catalogue/catalogue.ts';
import type { ServiceDefinition } from '../core/catalogue/definition.ts';
import { tokenPrefix } from '../core/catalogue/sdk-environment.ts';
import { ApiError } from '../core/errors.ts';
import { type Lease, statusOf } from '../core/lease.ts';
import type { Context } from '../core/operation.ts';
import { issueUseLease, type TokenHolder, type UseLeaseRequest } from '../core/operations/use-leases.ts';
import type { CredentialPath } from '../core/path.ts';
import type { Secret } from '../core/secret.ts';
import type { Placement } from '../core/target.ts';
import { hashToken, isUseTokenOf, newUseToken, newUseTokenNonce } from '../crypto/tokens.ts';
import { withBudget } from './agent-budgets.ts';
import { authenticate, type Vault } from './vault.ts';

export interface NewUseLease {
  readonly lease: Lease;
  readonly token: Secret;
  /** The service of the catalogue; null if the credential's targets are of none. */
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
  const tokenOf = ({ agentId, path, service }: TokenHolder): Secret => {
    const definition = service === null ? null : findService(service);
    return newUseToken(keys.row, definition === null ? '' : tokenPrefix(definition), nonce, [agentId, path]);
  };
  const operation = issueUseLease(context, {
    ...request,
    tokenHashOf: (holder) => hashToken(tokenOf(holder).reveal()),
  });
  return withBudget(budgets.leases, context, 1, clock.now(), async () => {
    const { lease, service } = await ledger.submit(operation);
    const token = tokenOf({ ...lease, service });
    return { lease, token, service: service === null ? null : findService(service) };
  });
}

const USE_TOKEN = /lhu_[A-Za-z0-9_-]{43}$/;

/**
 * As `authenticate`, for a request to a base URL: accepts the token of a use lease too, and not the administrator's.
 * @throws as `authenticate`; LEASE_ENDED
 */
export function authenticateUse(vault: Vault, token: string): Authentication | (() => Promise<Authentication>) {
  if (USE_TOKEN.test(token)) return () => authenticateHolder(vault, token);
  const found = authenticate(vault, token);
  if (typeof found === 'function') return found;
  if (found.kind !== 'admin') return found;
  throw new ApiError(
    'UNAUTHENTICATED',
    "A base URL takes the token of a session or a use lease, not the administrator's.",
  );
}

async function authenticateHolder(vault: Vault, token: string): Promise<Authentication> {
  const { ledger, store, keys, clock } = vault;
  const tokenHash = hashToken(token);
  const lease = await store.readLeaseOfToken(tokenHash);
  if (lease === null || !isUseTokenOf(keys.row, token, [lease.agentId, lease.path])) throw unknownToken();
  // Another node may have just registered the agent.
  if (ledger.memory.control.agentById(lease.agentId) === null) await ledger.refresh();
  const agent = ledger.memory.control.agentById(lease.agentId);
  if (agent === null) throw unknownToken();
  if (statusOf(lease, clock.now()) !== 'active')
    throw new ApiError('LEASE_ENDED', 'The use lease has ended. Ask for another one.');
  const authentication: Authentication = { kind: 'lease', tokenHash, agentName: agent.name };
  ledger.assertCapacity(authentication);
  return authentication;
}

const unknownToken = (): ApiError => new ApiError('UNAUTHENTICATED', 'The token is not valid.');

/** Where the credential is placed in a request, which is where a caller may put its token; null without targets. */
export async function findPlacement({ store }: Vault, path: CredentialPath): Promise<Placement | null> {
  const usage = await store.readUsage(path);
  return usage?.placement ?? null;
}
