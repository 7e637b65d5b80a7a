/**
 * The decision: whether the current policies allow an agent an action on a path. Retrieval, renewal and simulation all
 * call this function. Access is denied by default; among the matching policies the most restrictive one decides.
 * SOURCE: docs/decisions.md, "Policies".
 */
import { combineRules, describeLimit } from './approval-rule.ts';
import { isOperatorName, type PolicyName, type PrincipalName } from './names.ts';
import type { CredentialPath } from './path.ts';
import { matches, type Pattern } from './pattern.ts';
import { ACTIONS, type Action, isAction, type TtlSeconds } from './policy.ts';
import type { PolicyIndex } from './policy-index.ts';

export type Decision =
  | { readonly allowed: true; readonly policyName: PolicyName; readonly ttlSeconds: TtlSeconds }
  | { readonly allowed: false; readonly denial: Denial };

/** The first condition that no policy met. */
export type Denial = 'no_policy' | 'no_action' | 'no_path' | 'unknown_action';

export const DENIAL_REASONS: Readonly<Record<Denial, string>> = {
  no_policy: 'no policy names this agent',
  no_action: 'no policy grants this agent the action',
  no_path: 'no policy grants this agent the action on this path',
  unknown_action: `the action does not exist; the actions are ${ACTIONS.join(', ')}`,
};

/** As the log and the caller get it. */
export function denialReason(denial: Denial, name: PrincipalName): string {
  const reason = DENIAL_REASONS[denial];
  return isOperatorName(name) ? reason.replace('this agent', 'this operator') : reason;
}

export function decide(policies: PolicyIndex, name: PrincipalName, action: string, path: CredentialPath): Decision {
  if (!isAction(action)) return { allowed: false, denial: 'unknown_action' };
  const policy = policies.findDecidingPolicy(name, action, path);
  if (policy !== null) return { allowed: true, policyName: policy.name, ttlSeconds: policy.maxTtlSeconds };
  if (!policies.hasAnyPolicy(name)) return { allowed: false, denial: 'no_policy' };
  if (!policies.hasAction(name, action)) return { allowed: false, denial: 'no_action' };
  return { allowed: false, denial: 'no_path' };
}

interface Question {
  readonly policies: PolicyIndex;
  readonly agent: PrincipalName;
  readonly isRegistered: boolean;
  readonly action: string;
  readonly path: CredentialPath;
}

/** Explains the decision in a sentence. Scans all patterns of the agent, so a retrieval never calls it. */
export function explain(decision: Decision, question: Question): string {
  const { policies, agent, action, path } = question;
  return explainWith(decision, question, () => nearestPattern(policies.grantedPatterns(agent, action as Action), path));
}

/** The same with another search for the nearest pattern. */
export function explainWith(decision: Decision, question: Question, findNearest: () => Pattern | null): string {
  const { policies, agent, isRegistered, action, path } = question;
  const unregistered = isOperatorName(agent) ? ' The operator does not exist.' : ' The agent is not registered.';
  const unregisteredNote = isRegistered ? '' : unregistered;
  if (decision.allowed) {
    const policy = policies.get(decision.policyName);
    const matchedPattern = policy?.resources.find((pattern) => matches(pattern, path));
    return `Policy ${decision.policyName} grants ${action} on ${matchedPattern ?? path}; it is the most restrictive policy that matches.${approvalNote(question)}${unregisteredNote}`;
  }
  const nearest = decision.denial === 'no_path' ? findNearest() : null;
  const near = nearest === null ? '' : `; the nearest pattern is ${nearest}`;
  const sentence = `${denialReason(decision.denial, agent)}${near}.`;
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}${unregisteredNote}`;
}

/** Empty if no approval is needed. */
function approvalNote({ policies, agent, action, path }: Parameters<typeof explain>[1]): string {
  if (!isAction(action)) return '';
  const demanding = policies.findApprovalPolicies(agent, action, path);
  const terms = combineRules(demanding);
  if (terms === null) return '';
  const names = terms.policyNames.length === 1 ? 'policy' : 'policies';
  const operators = terms.quorum === 1 ? '1 operator' : `${terms.quorum} operators`;
  return ` An approval is needed: ${names} ${terms.policyNames.join(', ')}, ${describeLimit(terms)}, by ${operators}.`;
}

/** The pattern with the longest common prefix with the path; among equals the first in code-point order. */
export function nearestPattern(patterns: Iterable<Pattern>, path: CredentialPath): Pattern | null {
  let nearest: Pattern | null = null;
  let longest = -1;
  for (const pattern of patterns) {
    let common = 0;
    while (common < pattern.length && pattern[common] === path[common]) common++;
    const isFirst = common === longest && nearest !== null && pattern < nearest;
    if (common > longest || isFirst) [nearest, longest] = [pattern, common];
  }
  return nearest;
}
