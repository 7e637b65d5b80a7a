/**
 * The reach of an editor: what policies for `operator:<name>` grant it. An editor gives away only what it has, so it
 * writes only policies within its reach, and gives a key only to agents whose policies are all within it. SOURCE:
 * docs/operators.md, "What an editor may touch".
 */
import type { AgentName } from '../names.ts';
import { type OperationInput, type Outcome, rejected } from '../operation.ts';
import { hasRole } from '../operator.ts';
import { coversPattern } from '../pattern.ts';
import { isOfOperators, type Policy, principalMatches } from '../policy.ts';

type Granting = Pick<Policy, 'principal' | 'resources' | 'actions'>;

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
    : policies.every(isWithin)
      ? null
      : 'an editor may give only what policies grant it: an action on a path is not among that';
  if (reason === null) return null;
  return rejected('ACCESS_DENIED', `Access denied: ${reason}.`, entry('denied', { reason }));
}

/** As `beyondReach`, for all that policies grant the agent, whether or not it is registered. */
export function agentBeyondReach(input: OperationInput, agent: AgentName): Outcome<never> | null {
  if (input.caller.kind !== 'operator') return null;
  const granting = input.state.control.policies.all().filter(({ principal }) => principalMatches(principal, agent));
  return beyondReach(input, granting);
}
