/** What is asked of policies: may this agent do this here? Held to the grammars before the service is asked. */
import type { SimulateRequest } from '../../client/types.ts';
import { type AgentName, parseAgentName } from '../../core/names.ts';
import { type CredentialPath, parsePath } from '../../core/path.ts';
import type { Action } from '../../core/policy.ts';
import { actionRule } from './fields.ts';
import { ruleBroken } from './problems.ts';

export interface AccessQuery {
  readonly agent: AgentName;
  readonly action: Action;
  readonly path: CredentialPath;
}

/** A problem each for what breaks its grammar; the fields are called as `called` says. */
export function readQuestion(
  agent: string,
  action: string,
  path: string,
  called = { agent: 'AGENT', action: 'ACTION', path: 'PATH' },
): { readonly question: AccessQuery } | { readonly problems: readonly string[] } {
  const problems = [
    ruleBroken(() => parseAgentName(agent, called.agent)),
    actionRule(action, called.action),
    ruleBroken(() => parsePath(path, called.path)),
  ].filter((problem) => problem !== null);
  if (problems.length > 0) return { problems };
  return { question: { agent, action, path } as AccessQuery };
}

export function toSimulation({ agent, action, path }: AccessQuery): SimulateRequest {
  return { agent, action, resource: path };
}
