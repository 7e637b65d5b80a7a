/**
 * The decision: whether the current policies allow an agent an action on a path. Retrieval, renewal and simulation all
 * call this function. Access is denied by default; among the matching policies the most restrictive one decides.
 * SOURCE: docs/decisions.md, "Policies".
 */
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

/** Explains the decision in a sentence. Scans all patterns of the agent, so a retrieval never calls it. */
export function explain(
  decision: Decision,
  question: {
    policies: PolicyIndex;
    agent: PrincipalName;
    isRegistered: boolean;
    action: string;
    path: CredentialPath;
  },
): string {
  const { policies, agent, isRegistered, action, path } = question;
  const unregistered = isOperatorName(agent) ? ' The operator does not exist.' : ' The agent is not registered.';
  const unregisteredNote = isRegistered ? '' : unregistered;
  if (decision.allowed) {
    const policy = policies.get(decision.policyName);
    const matchedPattern = policy?.resources.find((pattern) => matches(pattern, path));
    return `Policy ${decision.policyName} grants ${action} on ${matchedPattern ?? path}; it is the most restrictive policy that matches.${unregisteredNote}`;
  }
  const nearest =
    decision.denial === 'no_path' ? nearestPattern(policies.grantedPatterns(agent, action as Action), path) : null;
  const near = nearest === null ? '' : `; the nearest pattern is ${nearest}`;
  const sentence = `${denialReason(decision.denial, agent)}${near}.`;
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}${unregisteredNote}`;
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
