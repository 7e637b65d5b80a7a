/**
 * The decision: whether the current policies allow an agent an action on a path. Retrieval, renewal and simulation all
 * call this function. Access is denied by default; among the matching policies the most restrictive one decides.
 * SOURCE: docs/decisions.md, "Policies".
 */
import { toSentence } from '../../core/denial-kinds.ts';
import { type DenialOf, reasonOf } from '../../core/denials.ts';
import { isOperatorName, type PolicyName, type PrincipalName } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import { matches } from '../../core/pattern.ts';
import { combineRules, describeLimit } from './approval-rule.ts';
import { isAction, type TtlSeconds } from './policy.ts';
import type { PolicyIndex } from './policy-index.ts';

export type Decision =
  | { readonly allowed: true; readonly policyName: PolicyName; readonly ttlSeconds: TtlSeconds }
  | { readonly allowed: false; readonly denial: PolicyDenial };

/** Names the first condition that no policy met. */
type PolicyDenial = DenialOf<'no_policy' | 'no_action' | 'no_path' | 'unknown_action'>;

export function decide(policies: PolicyIndex, name: PrincipalName, action: string, path: CredentialPath): Decision {
  if (!isAction(action)) return { allowed: false, denial: { code: 'unknown_action' } };
  const policy = policies.findDecidingPolicy(name, action, path);
  if (policy !== null) return { allowed: true, policyName: policy.name, ttlSeconds: policy.maxTtlSeconds };
  const code = !policies.hasAnyPolicy(name) ? 'no_policy' : !policies.hasAction(name, action) ? 'no_action' : 'no_path';
  return { allowed: false, denial: { code, principal: name, action } };
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
    decision.denial.code === 'no_path' && isAction(action) ? policies.nearestPattern(agent, action, path) : null;
  const near = nearest === null ? '' : `; the nearest pattern is ${nearest}`;
  return `${denialSentence(decision.denial, near)}${unregisteredNote}`;
}

/** The explanation without the pattern and the approval, which may be long. */
export function explainBriefly(decision: Decision, { action }: Pick<Question, 'action'>): string {
  return decision.allowed ? `Policy ${decision.policyName} grants ${action}.` : denialSentence(decision.denial);
}

function denialSentence(denial: PolicyDenial, addition = ''): string {
  return toSentence(`${reasonOf(denial)}${addition}`);
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
