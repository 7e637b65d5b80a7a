/**
 * The reach of an editor: the access that policies for `operator:<name>` grant it. An editor can grant only access that
 * its own policies grant, so it writes only policies within its reach, and gives a key only to agents whose policies
 * are all within it. SOURCE:
 * docs/operators.md, "Limits of the editor role".
 */

import type { AgentName, OperatorName } from '../../core/names.ts';
import { denied, type OperationInput, type Outcome } from '../../core/operation.ts';
import { coversPattern, type Pattern, toRanges } from '../../core/pattern.ts';
import { hasRole } from '../operators/operator.ts';
import { type ApprovalRule, approvalCovers } from './approval-rule.ts';
import {
  isOfOperators,
  lastsAsLong,
  type Policy,
  patternCovers,
  principalCovers,
  principalMatches,
  principalOf,
} from './policy.ts';

type Granting = Pick<Policy, 'principal' | 'resources' | 'actions' | 'approval' | 'expiresAt'>;

/** The outcome for an editor that may not write one of the policies; null if it may write all of them. */
export function beyondReach(input: OperationInput, policies: readonly Granting[]): Outcome<never> | null {
  const { identity, state } = input;
  if (identity.kind !== 'operator' || hasRole(identity.operator, 'admin')) return null;
  const { name } = identity.operator;
  const own = state.control.policies.all().filter(({ principal }) => principalMatches(principal, name));
  const isWithin = (granted: Granting): boolean =>
    granted.actions.every((action) => {
      // A policy must not outlast the reach from which it was written.
      const lasting = own.filter((policy) => policy.actions.includes(action) && lastsAsLong(policy, granted));
      const ranges = toRanges(lasting.flatMap(({ resources }) => resources));
      return granted.resources.every((pattern) => coversPattern(ranges, pattern));
    });
  if (policies.some(({ principal }) => isOfOperators(principal)))
    return denied(input, { code: 'policy_for_operators' });
  if (!policies.every(isWithin)) return denied(input, { code: 'beyond_reach' });
  const keepsAll = policies.every((policy) => keepsDemands(input, name, policy));
  return keepsAll ? null : denied(input, { code: 'drops_approval' });
}

/** Whether each action that the caller needs an approval for needs one at least as strict of whom the policy names. */
function keepsDemands({ state }: OperationInput, name: OperatorName, granted: Granting): boolean {
  const all = state.control.policies.all();
  const demands = all.flatMap(({ approval, principal, resources }) => {
    const isDemand = approval !== null && granted.actions.includes(approval.for) && principalMatches(principal, name);
    return isDemand ? [{ approval, resources }] : [];
  });
  return demands.every(({ approval, resources }) =>
    granted.resources.every((pattern) => {
      const isDemanded = resources.some((own) => patternCovers(own, pattern) || patternCovers(pattern, own));
      return !isDemanded || [granted, ...all].some((other) => demandsAtLeast(other, approval, granted, pattern));
    }),
  );
}

/** WHY as long: a demand that expires before the grant would lift the approval. */
function demandsAtLeast(other: Granting, rule: ApprovalRule, granted: Granting, pattern: Pattern): boolean {
  const { approval, principal, resources } = other;
  const isOfAll = principalCovers(principal, granted.principal) && resources.some((own) => patternCovers(own, pattern));
  return approval !== null && isOfAll && approvalCovers(rule, approval) && lastsAsLong(other, granted);
}

/**
 * The outcome for an editor that may not change or delete the policy, because it would lift an approval that others
 * demand; null if it may.
 */
export function liftsApproval(
  { identity, entry }: OperationInput,
  before: Pick<Policy, 'approval'>,
): Outcome<never> | null {
  if (identity.kind !== 'operator' || hasRole(identity.operator, 'admin') || before.approval === null) return null;
  return denied({ entry }, { code: 'lifts_approval' });
}

/** The outcome of `beyondReach` for all that policies grant the agent, whether or not it is registered. */
export function agentBeyondReach(input: OperationInput, agent: AgentName): Outcome<never> | null {
  if (input.identity.kind !== 'operator') return null;
  const principal = principalOf(agent);
  const granting = input.state.control.policies
    .all()
    .filter((policy) => principalMatches(policy.principal, agent))
    .map((policy) => ({ ...policy, principal }));
  return beyondReach(input, granting);
}
