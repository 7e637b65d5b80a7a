/**
 * Creates, replaces, deletes, reads and simulates policies.
 * SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies".
 */

import type { Caller } from '../agent.ts';
import type { BatchState } from '../batch-state.ts';
import { putRow, removeRow } from '../change.ts';
import { decide, explain } from '../decision.ts';
import { ApiError } from '../errors.ts';
import { ADMIN_LEASE_SECONDS, ADMIN_POLICY, VIEWER_POLICY } from '../lease.ts';
import { isOperatorName, type PolicyName, type PrincipalName } from '../names.ts';
import { type Context, type Operation, operation, rejected, succeeded } from '../operation.ts';
import { hasRole, roleFor } from '../operator.ts';
import type { CredentialPath } from '../path.ts';
import { isAction, type Policy, type PolicyDraft } from '../policy.ts';
import type { UseRequest } from '../target.ts';
import { decideTarget } from '../use-decision.ts';
import { access } from './access.ts';
import { adminOperation, adminRead } from './admin-read.ts';
import { beyondReach, liftsApproval } from './reach.ts';

export const createPolicy = adminOperation('policy.create', (spec, draft: PolicyDraft) =>
  operation<Policy>({ ...spec, resource: `policy:${draft.name}` }, (input) => {
    const { state, moment, entry } = input;
    const beyond = beyondReach(input, [draft]);
    if (beyond !== null) return beyond;
    if (state.control.policies.get(draft.name) !== null) {
      const denied = entry('denied', { reason: 'the name is taken' });
      return rejected('ALREADY_EXISTS', 'A policy of this name exists already; PUT replaces it.', denied);
    }
    const policy: Policy = { ...draft, createdAt: moment.now };
    return succeeded(policy, entry('allowed'), [putRow('policy', policy)]);
  }),
);

const policyNamed =
  (name: PolicyName) =>
  ({ control }: BatchState): Policy | null =>
    control.policies.get(name);

export const replacePolicy = adminOperation('policy.replace', (spec, draft: PolicyDraft) => {
  const { name } = draft;
  return operation<Policy>({ ...spec, resource: `policy:${name}`, target: policyNamed(name) }, (input) => {
    const { state, moment, entry } = input;
    const before = state.control.policies.get(name);
    const beyond =
      beyondReach(input, before === null ? [draft] : [before, draft]) ??
      (before === null ? null : liftsApproval(input, before));
    if (beyond !== null) return beyond;
    const policy: Policy = { ...draft, createdAt: before?.createdAt ?? moment.now };
    return succeeded(policy, entry('allowed'), [putRow('policy', policy)]);
  });
});

export const deletePolicy = adminOperation('policy.delete', (spec, name: PolicyName) =>
  operation<null>({ ...spec, resource: `policy:${name}`, target: policyNamed(name) }, (input) => {
    const { state, entry } = input;
    const policy = state.control.policies.get(name);
    if (policy === null) return rejected('NOT_FOUND', 'The policy does not exist.', entry('not_found'));
    const beyond = beyondReach(input, [policy]) ?? liftsApproval(input, policy);
    if (beyond !== null) return beyond;
    return succeeded(null, entry('allowed'), [removeRow('policy', { name })]);
  }),
);

export const readPolicy = adminOperation('policy.read', (spec, name: PolicyName) =>
  adminRead<Policy>(
    spec,
    `policy:${name}`,
    (known) => policyNamed(name)(known) ?? new ApiError('NOT_FOUND', 'The policy does not exist.'),
  ),
);

/** Sorted by name. */
export const listPolicies = adminOperation('policy.list', (spec) =>
  adminRead<readonly Policy[]>(spec, '*', ({ control }) => control.policies.all()),
);

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
  const reads = request === null ? {} : { credential: path, usage: true as const };
  return operation(
    { context, event: 'policy.simulate', resource: path, requiredRole: 'authenticated', reads },
    ({ caller, state, entry }) => {
      if (caller.kind === 'agent' && caller.agent.name !== agent) {
        const denied = entry('denied', { reason: 'an agent may simulate only for itself' });
        return rejected('ACCESS_DENIED', 'An agent may simulate only for itself.', denied);
      }
      const byRole = simulateRole(state, agent, action);
      if (byRole !== null) return succeeded(byRole, null);
      const { policies } = state.control;
      const decision = decide(policies, agent, action, path);
      const isRegistered = state.control.principalByName(agent) !== null;
      const reason = explain(decision, { policies, agent, isRegistered, action, path });
      if (!decision.allowed) return succeeded({ ...DENIED, reason }, null);
      const lack = request === null ? null : lackOfTargets(state, caller, path, request);
      if (lack !== null) return succeeded({ ...DENIED, reason: `${reason} But ${lack}.` }, null);
      const { policyName, ttlSeconds } = decision;
      const allowed: Simulated = { allowed: true, policyName, leaseTtlSeconds: ttlSeconds, reason };
      return succeeded(allowed, null);
    },
  );
}

/** What the roles of an operator decide; null if policies decide. */
function simulateRole({ control }: BatchState, name: PrincipalName, action: string): Simulated | null {
  const operator = isOperatorName(name) ? control.operatorByName(name) : null;
  if (operator === null || !isAction(action)) return null;
  const allowed = { allowed: true, leaseTtlSeconds: ADMIN_LEASE_SECONDS };
  if (hasRole(operator, 'admin'))
    return { ...allowed, policyName: ADMIN_POLICY, reason: 'An operator with the role admin may do everything.' };
  if (action === 'list') return { ...allowed, policyName: VIEWER_POLICY, reason: 'Every operator may list.' };
  const needed = roleFor(`credential.${action}`);
  return hasRole(operator, needed)
    ? null
    : { ...DENIED, reason: `Only an operator with the role ${needed} may do this.` };
}

const DENIED: Omit<Simulated, 'reason'> = { allowed: false, policyName: null, leaseTtlSeconds: null };

/** Why the targets do not allow the request; null if they do. Only callers who may list learn of other hosts. */
function lackOfTargets(state: BatchState, caller: Caller, path: CredentialPath, request: UseRequest): string | null {
  const credential = state.credential(path);
  const usage = credential === null ? null : state.usage(credential);
  if (usage === null) return 'the credential has no targets, or does not exist';
  const byTargets = decideTarget(usage, request);
  if (byTargets.allowed) return null;
  return access(state, caller, 'list', path).allowed ? byTargets.explanation : byTargets.reason;
}
