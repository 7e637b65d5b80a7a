/**
 * Access to credentials: the decision for agents and operators, the administrator's rule, and the lease that follows.
 */

import type { BatchState } from '../../core/batch-state.ts';
import type { Denial } from '../../core/denials.ts';
import { actorId, actorName } from '../../core/identity.ts';
import type { LeaseId, PrincipalName, TokenHash } from '../../core/names.ts';
import { denied, type OperationInput, type Outcome } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { Agent } from '../agents/agent.ts';
import { ADMIN_LEASE_SECONDS, ADMIN_POLICY, type Lease, VIEWER_POLICY } from '../leases/lease.ts';
import { hasRole, type Operator } from '../operators/operator.ts';
import type { Action } from '../policies/policy.ts';
import { decide } from '../policies/policy-index.ts';
import type { Credential } from './credential.ts';

export type Access =
  | { readonly allowed: true; readonly policyName: string; readonly ttlSeconds: number }
  /** The denial does not reveal whether the path exists. */
  | { readonly allowed: false; readonly denial: Denial };

/** The outcome for a missing credential. Only callers with a grant may get it. */
export function credentialNotFound(input: OperationInput, policyName: string): Outcome<never> {
  return denied(input, { code: 'credential_not_found' }, { policyName });
}

/** The outcome for a credential whose row was edited outside Leasehold. Such a credential can only be deleted. */
export function credentialAltered(input: OperationInput, policyName: string | null): Outcome<never> {
  return denied(input, { code: 'credential_altered' }, { policyName });
}

const ADMIN_ACCESS: Access = { allowed: true, policyName: ADMIN_POLICY, ttlSeconds: ADMIN_LEASE_SECONDS };
/** The end of a use that runs while its operator loses the role. */
const ADMINS_ONLY: Access = { allowed: false, denial: { code: 'use_needs_admin' } };
/** Every operator sees which credentials there are. No lease follows from it. */
const VIEWER_ACCESS: Access = { ...ADMIN_ACCESS, policyName: VIEWER_POLICY };

/** An agent, an operator or the administrator, to whom policies and roles grant access. */
export type Grantee =
  | { readonly kind: 'admin' }
  | { readonly kind: 'agent'; readonly agent: Agent }
  | { readonly kind: 'lease'; readonly agent: Agent }
  | { readonly kind: 'operator'; readonly operator: Operator };

/** The administrator's token, or an operator with that role. */
function isAdministrator(identity: Grantee): boolean {
  return identity.kind === 'admin' || (identity.kind === 'operator' && hasRole(identity.operator, 'admin'));
}

function policyAccess(known: BatchState, name: PrincipalName, action: Action, path: CredentialPath): Access {
  return decide(known.control.policies, name, action, path);
}

export function access(known: BatchState, identity: Grantee, action: Action, path: CredentialPath): Access {
  if (identity.kind === 'admin') return ADMIN_ACCESS;
  if (identity.kind !== 'operator') return policyAccess(known, identity.agent.name, action, path);
  const { operator } = identity;
  if (hasRole(operator, 'admin')) return ADMIN_ACCESS;
  if (action === 'list') return VIEWER_ACCESS;
  if (action === 'use') return ADMINS_ONLY;
  return policyAccess(known, operator.name, action, path);
}

/** Decides about reading a value, which `--admin-retrieve=deny` forbids the administrator. */
export function retrievalAccess(known: BatchState, identity: Grantee, path: CredentialPath): Access {
  if (isAdministrator(identity) && !known.settings.adminMayRetrieve) {
    return { allowed: false, denial: { code: 'admin_retrieve_off' } };
  }
  return access(known, identity, 'retrieve', path);
}

/** The lease that an allowed decision grants. */
export function newLease(
  { identity, moment }: OperationInput,
  kind: Lease['kind'],
  { id: credentialId, path }: Credential,
  version: number,
  policyName: string,
  ttlSeconds: number,
  tokenHash: TokenHash | null,
): Lease {
  return {
    id: moment.newId() as LeaseId,
    kind,
    agentId: actorId(identity),
    credentialId,
    agentName: actorName(identity),
    path,
    version,
    policyName,
    issuedAt: moment.now,
    expiresAt: moment.now + ttlSeconds * 1000,
    revokedAt: null,
    tokenHash,
    seq: moment.seq,
  };
}
