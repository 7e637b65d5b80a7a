/** Simulates decisions. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies". */

import type { BatchState } from '../../core/batch-state.ts';
import { messageOf, toldOf } from '../../core/denials.ts';
import type { Identity } from '../../core/identity.ts';
import { isOperatorName, type PrincipalName } from '../../core/names.ts';
import { type Context, denied, type Operation, operation, succeeded } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { lackOfPermission } from '../../core/permissions.ts';
import { access, retrievalAccess } from '../credentials/access.ts';
import { ADMIN_POLICY, VIEWER_POLICY } from '../leases/lease.ts';
import { hasRole } from '../operators/operator.ts';
import type { UseRequest } from '../use/target.ts';
import { decideTarget, withoutNearest } from '../use/use-decision.ts';
import { explain } from './decision-text.ts';
import { isAction } from './policy.ts';
import { decide } from './policy-index.ts';

export interface Simulated {
  readonly allowed: boolean;
  readonly policyName: string | null;
  readonly leaseTtlSeconds: number | null;
  readonly reason: string;
}

export interface SimulatedQuestion {
  readonly agent: PrincipalName;
  readonly path: CredentialPath;
  readonly action: string;
  /** The request of a use; null to decide by the policies only. */
  readonly request: UseRequest | null;
}

/**
 * Calls the decision functions, changes nothing and is not recorded. An agent may simulate only for itself. The value
 * and the limits are not looked at.
 */
export function simulate(context: Context, question: SimulatedQuestion): Operation<Simulated> {
  const { agent, path, action, request } = question;
  const reads = request === null ? {} : { credential: path, targets: path };
  return operation({ context, permission: 'policy.simulate', resource: path, reads }, ({ identity, state, entry }) => {
    if (identity.kind === 'agent' && identity.agent.name !== agent) {
      return denied({ entry }, { code: 'simulates_other' });
    }
    const byRole = simulateRole(state, question);
    if (byRole !== null) return succeeded(byRole, null);
    const { policies } = state.control;
    const decision = decide(policies, agent, action, path);
    const isRegistered = state.control.principalByName(agent) !== null;
    const reason = explain(decision, { policies, agent, isRegistered, action, path });
    if (!decision.allowed) return succeeded({ ...DENIED, reason }, null);
    const lack = request === null ? null : lackOfTargets(state, identity, path, request);
    if (lack !== null) return succeeded({ ...DENIED, reason: `${reason} But ${lack}.` }, null);
    const { policyName, ttlSeconds } = decision;
    const allowed: Simulated = { allowed: true, policyName, leaseTtlSeconds: ttlSeconds, reason };
    return succeeded(allowed, null);
  });
}

/** The decision of an operator's roles; null if policies decide. */
function simulateRole(state: BatchState, { agent: name, path, action }: SimulatedQuestion): Simulated | null {
  const operator = isOperatorName(name) ? state.control.operatorByName(name) : null;
  if (operator === null || !isAction(action)) return null;
  const holder = { kind: 'operator', operator } as const;
  const lack = lackOfPermission(`credential.${action}`, holder);
  if (lack !== null) return { ...DENIED, reason: messageOf(lack) };
  const decided = action === 'retrieve' ? retrievalAccess(state, holder, path) : access(state, holder, action, path);
  if (!decided.allowed) return hasRole(operator, 'admin') ? { ...DENIED, reason: messageOf(decided.denial) } : null;
  const { policyName, ttlSeconds } = decided;
  const reason = ROLE_REASONS.get(policyName);
  return reason === undefined ? null : { allowed: true, policyName, leaseTtlSeconds: ttlSeconds, reason };
}

/** The reasons for access that a role grants, by the name that its lease has in place of a policy's. */
const ROLE_REASONS: ReadonlyMap<string, string> = new Map([
  [ADMIN_POLICY, 'An operator with the role admin may do everything.'],
  [VIEWER_POLICY, 'Every operator may list.'],
]);

const DENIED: Omit<Simulated, 'reason'> = { allowed: false, policyName: null, leaseTtlSeconds: null };

/**
 * Returns the reason why the targets do not allow the request, or null if they do. Only callers who may list learn of
 * other hosts, and whether the credential exists.
 */
function lackOfTargets(
  state: BatchState,
  identity: Identity,
  path: CredentialPath,
  request: UseRequest,
): string | null {
  const credential = state.credential(path);
  const mayRead = access(state, identity, 'list', path).allowed;
  if (credential === null && mayRead) return toldOf({ code: 'credential_not_found' });
  const binding = credential === null ? null : state.binding(credential);
  if (binding === null) return toldOf({ code: 'targets_not_found' });
  const byTargets = decideTarget(binding, request);
  if (byTargets.allowed) return null;
  return toldOf(mayRead ? byTargets.denial : withoutNearest(byTargets.denial));
}
