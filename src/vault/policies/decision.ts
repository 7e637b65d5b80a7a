/**
 * The decision: whether the current policies allow an agent an action on a path. Retrieval, renewal and simulation all
 * call this function. Access is denied by default; among the matching policies the most restrictive one decides.
 * SOURCE: docs/decisions.md, "Policies".
 */
import { isOperatorName, type PolicyName, type PrincipalName } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import { matches } from '../../core/pattern.ts';
import { combineRules, describeLimit } from './approval-rule.ts';
import { ACTIONS, isAction, type TtlSeconds } from './policy.ts';
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

/** The reason as the log and the caller receive it. */
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

export function explain(decision: Decision, question: Question): string {
  const { policies, agent, isRegistered, action, path } = question;
  const unregistered = isOperatorName(agent) ? ' The operator does not exist.' : ' The agent is not registered.';
  const unregisteredNote = isRegistered ? '' : unregistered;
  if (decision.allowed) {
    const policy = policies.get(decision.policyName);
    const matchedPattern = policy?.resources.find((pattern) => matches(pattern, path));
    return `Policy ${decision.policyName} grants ${action} on ${matchedPattern ?? path}; it is the most restrictive policy that matches.${approvalNote(question)}${unregisteredNote}`;
  }
  const nearest =
    decision.denial === 'no_path' && isAction(action) ? policies.nearestPattern(agent, action, path) : null;
  const near = nearest === null ? '' : `; the nearest pattern is ${nearest}`;
  return `${denialSentence(decision.denial, agent, near)}${unregisteredNote}`;
}

/** The explanation without the pattern and the approval, which may be long. */
export function explainBriefly(decision: Decision, { agent, action }: Pick<Question, 'agent' | 'action'>): string {
  return decision.allowed
    ? `Policy ${decision.policyName} grants ${action}.`
    : denialSentence(decision.denial, agent, '');
}

function denialSentence(denial: Denial, agent: PrincipalName, addition: string): string {
  const sentence = `${denialReason(denial, agent)}${addition}.`;
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`;
}

function approvalNote({ policies, agent, action, path }: Parameters<typeof explain>[1]): string {
  if (!isAction(action)) return '';
  const demanding = policies.findApprovalPolicies(agent, action, path);
  const terms = combineRules(demanding);
  if (terms === null) return '';
  const names = terms.policyNames.length === 1 ? 'policy' : 'policies';
  const operators = terms.quorum === 1 ? '1 operator' : `${terms.quorum} operators`;
  return ` An approval is needed: ${names} ${terms.policyNames.join(', ')}, ${describeLimit(terms)}, by ${operators}.`;
}
