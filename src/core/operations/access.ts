/** Access to credentials: the decision for agents, and the administrator's rule. */
import type { Caller } from '../agent.ts';
import type { BatchState } from '../batch-state.ts';
import { DENIAL_REASONS, decide } from '../decision.ts';
import { ADMIN_LEASE_SECONDS, ADMIN_POLICY } from '../lease.ts';
import type { AgentName } from '../names.ts';
import { type OperationInput, type Outcome, rejected } from '../operation.ts';
import type { CredentialPath } from '../path.ts';
import type { Action } from '../policy.ts';

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

export function agentAccess(known: BatchState, agent: AgentName, action: Action, path: CredentialPath): Access {
  const decision = decide(known.control.policies, agent, action, path);
  if (decision.allowed) return decision;
  const reason = DENIAL_REASONS[decision.denial];
  return { allowed: false, reason, message: `Access denied: ${reason} (${action}).` };
}

export function access(known: BatchState, caller: Caller, action: Action, path: CredentialPath): Access {
  return caller.kind === 'admin' ? ADMIN_ACCESS : agentAccess(known, caller.agent.name, action, path);
}

/** As `access`, for reading a value, which `--admin-retrieve=deny` forbids the administrator. */
export function retrievalAccess(known: BatchState, caller: Caller, path: CredentialPath): Access {
  if (caller.kind === 'admin' && !known.settings.adminMayRetrieve) {
    const reason = 'the administrator may not read values here';
    return { allowed: false, reason, message: `Access denied: ${reason} (--admin-retrieve=deny).` };
  }
  return access(known, caller, 'retrieve', path);
}
