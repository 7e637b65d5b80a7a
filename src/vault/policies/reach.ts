/**
 * The reach of an editor: what policies for `operator:<name>` grant it. An editor gives away only what it has, so it
 * writes only policies within its reach, and gives a key only to agents whose policies are all within it. SOURCE:
 * docs/operators.md, "Limits of the editor role".
 */

import type { AgentName, OperatorName } from '../../core/names.ts';
import { denied, type OperationInput, type Outcome } from '../../core/operation.ts';
import { coversPattern, type Pattern } from '../../core/pattern.ts';
import { hasRole } from '../operators/operator.ts';
import { type ApprovalRule, approvalCovers } from './approval-rule.ts';
import {
  isOfOperators,
  type Policy,
  type Principal,
  patternCovers,
  principalCovers,
  principalMatches,
  principalOf,
} from './policy.ts';

type Granting = Pick<Policy, 'principal' | 'resources' | 'actions' | 'approval'>;

/** The outcome for an editor that may not write one of the policies; null if it may write all of them. */
export function beyondReach(input: OperationInput, policies: readonly Granting[]): Outcome<never> | null {
  const { caller, state } = input;
  if (caller.kind !== 'operator' || hasRole(caller.operator, 'admin')) return null;
  const { name } = caller.operator;
  const isWithin = ({ actions, resources }: Granting): boolean =>
    actions.every((action) => {
      const ranges = state.control.policies.grantedRanges(name, action);
      return resources.every((pattern) => coversPattern(ranges, pattern));
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
      return (
        !isDemanded || [granted, ...all].some((other) => demandsAtLeast(other, approval, granted.principal, pattern))
      );
    }),
  );
}

function demandsAtLeast(
  { approval, principal, resources }: Pick<Policy, 'approval' | 'principal' | 'resources'>,
  rule: ApprovalRule,
  of: Principal,
  pattern: Pattern,
): boolean {
  const isOfAll = principalCovers(principal, of) && resources.some((own) => patternCovers(own, pattern));
  return approval !== null && isOfAll && approvalCovers(rule, approval);
}

/**
 * The outcome for an editor that may not change or delete the policy, because it would lift an approval that others
 * demand; null if it may.
 */
export function liftsApproval(
  { caller, entry }: OperationInput,
  before: Pick<Policy, 'approval'>,
): Outcome<never> | null {
  if (caller.kind !== 'operator' || hasRole(caller.operator, 'admin') || before.approval == null) return null;
  return denied({ entry }, { code: 'lifts_approval' });
}

/** The outcome of `beyondReach` for all that policies grant the agent, whether or not it is registered. */
export function agentBeyondReach(input: OperationInput, agent: AgentName): Outcome<never> | null {
  if (input.caller.kind !== 'operator') return null;
  const principal = principalOf(agent);
  const granting = input.state.control.policies
    .all()
    .filter((policy) => principalMatches(policy.principal, agent))
    .map((policy) => ({ ...policy, principal }));
  return beyondReach(input, granting);
}
