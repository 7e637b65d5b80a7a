/** Access to credentials: the decision for agents and operators, and the administrator's rule. */
import { decide, denialReason } from '../../vault/policies/decision.ts';
import type { Action } from '../../vault/policies/policy.ts';
import type { Agent } from '../agent.ts';
import type { BatchState } from '../batch-state.ts';
import { ADMIN_LEASE_SECONDS, ADMIN_POLICY, VIEWER_POLICY } from '../lease.ts';
import type { PrincipalName } from '../names.ts';
import { type OperationInput, type Outcome, rejected } from '../operation.ts';
import { hasRole, type Operator } from '../operator.ts';
import type { CredentialPath } from '../path.ts';

export type Access =
  | { readonly allowed: true; readonly policyName: string; readonly ttlSeconds: number }
  /** `reason` is for the log, `message` for the caller; neither reveals whether the path exists. */
  | { readonly allowed: false; readonly reason: string; readonly message: string };

type Denied = Extract<Access, { allowed: false }>;

/** The outcome of a denied request. `leaseId` is the lease that the request named, or null. */
export function accessDenied(
  { entry }: OperationInput,
  { reason, message }: Denied,
  leaseId: string | null = null,
): Outcome<never> {
  return rejected('ACCESS_DENIED', message, entry('denied', { reason, leaseId }));
}

/** The outcome for a missing credential or version. Only callers with a grant may get it. */
export function notFound(
  { entry }: OperationInput,
  policyName: string,
  what: 'credential' | 'version',
): Outcome<never> {
  const details = { policyName, reason: `the ${what} does not exist` };
  return rejected('NOT_FOUND', `The ${what} does not exist.`, entry('not_found', details));
}

/** The outcome for a credential whose row was edited outside Leasehold. Such a credential can only be deleted. */
export function credentialAltered({ entry }: OperationInput, policyName: string | null): Outcome<never> {
  const reason = "the credential's row does not authenticate";
  const message =
    'The credential does not authenticate: its row was edited outside Leasehold. Delete it and store it again.';
  return rejected('INTEGRITY_FAILURE', message, entry('error', { policyName, reason }));
}

const ADMIN_ACCESS: Access = { allowed: true, policyName: ADMIN_POLICY, ttlSeconds: ADMIN_LEASE_SECONDS };
/** The end of a use that runs while its operator loses the role. */
const ADMINS_ONLY: Access = {
  allowed: false,
  reason: 'only an operator with the role admin may use credentials',
  message: 'Access denied: only an operator with the role admin may use credentials (use).',
};
/** Every operator sees which credentials there are. No lease follows from it. */
const VIEWER_ACCESS: Access = { ...ADMIN_ACCESS, policyName: VIEWER_POLICY };

export type Holder =
  | { readonly kind: 'admin' }
  | { readonly kind: 'agent'; readonly agent: Agent }
  | { readonly kind: 'lease'; readonly agent: Agent }
  | { readonly kind: 'operator'; readonly operator: Operator };

/** The administrator's token, or an operator with that role. */
function isAdministrator(caller: Holder): boolean {
  return caller.kind === 'admin' || (caller.kind === 'operator' && hasRole(caller.operator, 'admin'));
}

function policyAccess(known: BatchState, name: PrincipalName, action: Action, path: CredentialPath): Access {
  const decision = decide(known.control.policies, name, action, path);
  if (decision.allowed) return decision;
  const reason = denialReason(decision.denial, name);
  return { allowed: false, reason, message: `Access denied: ${reason} (${action}).` };
}

export function access(known: BatchState, caller: Holder, action: Action, path: CredentialPath): Access {
  if (caller.kind === 'admin') return ADMIN_ACCESS;
  if (caller.kind !== 'operator') return policyAccess(known, caller.agent.name, action, path);
  const { operator } = caller;
  if (hasRole(operator, 'admin')) return ADMIN_ACCESS;
  if (action === 'list') return VIEWER_ACCESS;
  if (action === 'use') return ADMINS_ONLY;
  return policyAccess(known, operator.name, action, path);
}

/** As `access`, for reading a value, which `--admin-retrieve=deny` forbids the administrator. */
export function retrievalAccess(known: BatchState, caller: Holder, path: CredentialPath): Access {
  if (isAdministrator(caller) && !known.settings.adminMayRetrieve) {
    const reason = 'the administrator may not read values here';
    return { allowed: false, reason, message: `Access denied: ${reason} (--admin-retrieve=deny).` };
  }
  return access(known, caller, 'retrieve', path);
}
