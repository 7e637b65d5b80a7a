/**
 * An access query: whether an agent may perform an action on a path. It is validated and evaluated here or by the
 * service.
 */
import type { SimulateRequest, Simulation } from '../../client/types.ts';
import { decide, explain } from '../../core/decision.ts';
import { type AgentName, parseAgentName } from '../../core/names.ts';
import { type CredentialPath, parsePath } from '../../core/path.ts';
import type { Action, Policy, PolicyDraft } from '../../core/policy.ts';
import { PolicyIndex } from '../../core/policy-index.ts';
import { actionRule } from './fields.ts';
import { ruleBroken } from './problems.ts';

export interface AccessQuery {
  readonly agent: AgentName;
  readonly action: Action;
  readonly path: CredentialPath;
}

type ReadQuestion = { readonly question: AccessQuery } | { readonly problems: readonly string[] };

/** Returns a problem for each invalid field. */
export function readQuestion(agent: string, action: string, path: string): ReadQuestion {
  const problems = [
    ruleBroken(() => parseAgentName(agent, 'AGENT')),
    actionRule(action, 'ACTION'),
    ruleBroken(() => parsePath(path, 'PATH')),
  ].filter((problem) => problem !== null);
  if (problems.length > 0) return { problems };
  return { question: { agent, action, path } as AccessQuery };
}

export function toSimulation({ agent, action, path }: AccessQuery): SimulateRequest {
  return { agent, action, resource: path };
}

export type Ask = (question: AccessQuery) => Promise<Simulation>;

/**
 * Evaluates policies that are only in files, by the decision function of the service. Every agent counts as registered.
 */
export function localSimulator(drafts: readonly PolicyDraft[]): Ask {
  const policies = new PolicyIndex();
  for (const draft of drafts) policies.put({ ...draft, createdAt: 0 } satisfies Policy);
  return async (question) => {
    const decision = decide(policies, question.agent, question.action, question.path);
    return {
      allowed: decision.allowed,
      policy_name: decision.allowed ? decision.policyName : null,
      lease_ttl: decision.allowed ? decision.ttlSeconds : null,
      reason: explain(decision, { ...question, policies, isRegistered: true }),
    };
  };
}
