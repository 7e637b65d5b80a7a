/** Access to credentials as operations ask for it: the decision, and the administrator's own rule. */
import type { Caller } from '../agent.ts';
import type { BatchState } from '../batch-state.ts';
import { DENIAL_REASONS, decide } from '../decision.ts';
import { ADMIN_LEASE_SECONDS, ADMIN_POLICY } from '../lease.ts';
import type { AgentName } from '../names.ts';
import { type DecisionPoint, type Outcome, refused } from '../operation.ts';
import type { CredentialPath } from '../path.ts';
import type { Action } from '../policy.ts';

export type Access =
  | { readonly allowed: true; readonly policyName: string; readonly ttlSeconds: number }
  /** `reason` for the log, `message` for the caller; neither tells whether the path exists. */
  | { readonly allowed: false; readonly reason: string; readonly message: string };

type Denied = Extract<Access, { allowed: false }>;

/** Refuses what the decision did not allow. `leaseId` is given where a lease is what was asked about. */
export function accessDenied(
  { entry }: DecisionPoint,
  { reason, message }: Denied,
  leaseId: string | null = null,
): Outcome<never> {
  return refused('ACCESS_DENIED', message, entry('denied', { reason, leaseId }));
}

/** Tells a caller with a grant that nothing is there. */
export function notFound({ entry }: DecisionPoint, policyName: string, what: 'credential' | 'version'): Outcome<never> {
  const details = { policyName, reason: `the ${what} does not exist` };
  return refused('NOT_FOUND', `The ${what} does not exist.`, entry('not_found', details));
}

/** Refuses what would rest on a row that was altered outside. Deleting the credential is the way on. */
export function refuseAltered({ entry }: DecisionPoint, policyName: string | null): Outcome<never> {
  const reason = "the credential's row does not authenticate";
  const message = 'The credential does not authenticate: its row was altered outside. Delete it and store it again.';
  return refused('INTEGRITY_FAILURE', message, entry('error', { policyName, reason }));
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

/** As `access`, where a value is read: an operator may have taken that from the administrator. */
export function retrievalAccess(known: BatchState, caller: Caller, path: CredentialPath): Access {
  if (caller.kind === 'admin' && !known.settings.adminMayRetrieve) {
    const reason = 'the administrator may not read values here';
    return { allowed: false, reason, message: `Access denied: ${reason} (--admin-retrieve=deny).` };
  }
  return access(known, caller, 'retrieve', path);
}
