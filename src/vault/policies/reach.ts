/**
 * The reach of an editor: what policies for `operator:<name>` grant it. An editor gives away only what it has, so it
 * writes only policies within its reach, and gives a key only to agents whose policies are all within it. SOURCE:
 * docs/operators.md, "Limits of the editor role".
 */

import type { AgentName, OperatorName } from '../../core/names.ts';
import { type OperationInput, type Outcome, rejected } from '../../core/operation.ts';
import { hasRole } from '../../core/operator.ts';
import { coversPattern, type Pattern } from '../../core/pattern.ts';
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
  const { caller, state, entry } = input;
  if (caller.kind !== 'operator' || hasRole(caller.operator, 'admin')) return null;
  const { name } = caller.operator;
  const isWithin = ({ actions, resources }: Granting): boolean =>
    actions.every((action) => {
      const ranges = state.control.policies.grantedRanges(name, action);
      return resources.every((pattern) => coversPattern(ranges, pattern));
    });
  const reason = policies.some(({ principal }) => isOfOperators(principal))
    ? 'only an operator with the role admin may write policies for operators'
    : !policies.every(isWithin)
      ? 'an editor may give only what policies grant it: an action on a path is not among that'
      : policies.every((policy) => keepsDemands(input, name, policy))
        ? null
        : 'what an editor needs an approval for, it may give only with the same demand for an approval';
  if (reason === null) return null;
  return rejected('ACCESS_DENIED', `Access denied: ${reason}.`, entry('denied', { reason }));
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
  const reason = 'only an operator with the role admin may change or delete a policy that demands an approval';
  return rejected('ACCESS_DENIED', `Access denied: ${reason}.`, entry('denied', { reason }));
}

/** As `beyondReach`, for all that policies grant the agent, whether or not it is registered. */
export function agentBeyondReach(input: OperationInput, agent: AgentName): Outcome<never> | null {
  if (input.caller.kind !== 'operator') return null;
  const principal = principalOf(agent);
  const granting = input.state.control.policies
    .all()
    .filter((policy) => principalMatches(policy.principal, agent))
    .map((policy) => ({ ...policy, principal }));
  return beyondReach(input, granting);
}
