/** The sentences about a decision: the policy and the pattern that grant access, or the condition that is not met. */
import { toSentence } from '../../core/denial-kinds.ts';
import { reasonOf } from '../../core/denials.ts';
import { isOperatorName, type PrincipalName } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import { matches } from '../../core/pattern.ts';
import { combineRules, describeLimit } from './approval-rule.ts';
import { isAction } from './policy.ts';
import type { Decision, PolicyDenial, PolicyIndex } from './policy-index.ts';

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
