/**
 * THE decision: may this agent do this here, by the policies as they are? Retrieval, renewal and simulation ask this one
 * function. Deny by default; of all that match the most restrictive policy decides. SOURCE: decisions, "Policies and decisions".
 */
import type { AgentName, PolicyName } from './names.ts';
import type { CredentialPath } from './path.ts';
import { matches, type Pattern } from './pattern.ts';
import { ACTIONS, type Action, isAction, type TtlSeconds } from './policy.ts';
import type { PolicyIndex } from './policy-index.ts';

export type Decision =
  | { readonly allowed: true; readonly policyName: PolicyName; readonly ttlSeconds: TtlSeconds }
  | { readonly allowed: false; readonly denial: Denial };

/** The first thing that was missing. */
export type Denial = 'no_policy' | 'no_action' | 'no_path' | 'unknown_action';

export const DENIAL_REASONS: Readonly<Record<Denial, string>> = {
  no_policy: 'no policy names this agent',
  no_action: 'no policy grants this agent the action',
  no_path: 'no policy grants this agent the action on this path',
  unknown_action: `the action does not exist; there are ${ACTIONS.join(', ')}`,
};

export function decide(policies: PolicyIndex, agent: AgentName, action: string, path: CredentialPath): Decision {
  if (!isAction(action)) return { allowed: false, denial: 'unknown_action' };
  const policy = policies.findDecidingPolicy(agent, action, path);
  if (policy !== null) return { allowed: true, policyName: policy.name, ttlSeconds: policy.maxTtlSeconds };
  if (!policies.hasAnyPolicy(agent)) return { allowed: false, denial: 'no_policy' };
  if (!policies.hasAction(agent, action)) return { allowed: false, denial: 'no_action' };
  return { allowed: false, denial: 'no_path' };
}

/** What decided, in a sentence, for people. Costs a look at the agent's patterns; never on the way of a retrieval. */
export function explain(
  decision: Decision,
  question: { policies: PolicyIndex; agent: AgentName; isRegistered: boolean; action: string; path: CredentialPath },
): string {
  const { policies, agent, isRegistered, action, path } = question;
  const unregisteredNote = isRegistered ? '' : ' The agent is not registered.';
  if (decision.allowed) {
    const policy = policies.get(decision.policyName);
    const matchedPattern = policy?.resources.find((pattern) => matches(pattern, path));
    return `Policy ${decision.policyName} grants ${action} on ${matchedPattern ?? path}; of those that match it is the most restrictive.${unregisteredNote}`;
  }
  const nearest =
    decision.denial === 'no_path' ? nearestPattern(policies.grantedPatterns(agent, action as Action), path) : null;
  const near = nearest === null ? '' : `; the nearest pattern is ${nearest}`;
  const sentence = `${DENIAL_REASONS[decision.denial]}${near}.`;
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}${unregisteredNote}`;
}

/** The pattern that has the longest beginning in common with the path; of equals the first in code-point order. */
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
