/**
 * An access query: whether an agent may perform an action on a path. It is validated here, and evaluated here or by the
 * server.
 */

import type { SimulateRequest, Simulation } from '../../client/types.ts';
import { parsePrincipalName } from '../../core/names.ts';
import { nearest } from '../../core/operator-text.ts';
import { parsePath } from '../../core/path.ts';
import { ruleBroken } from '../../engine/errors.ts';
import type { AccessQuery } from '../../vault/policies/access-explanation.ts';
import { decide, explain } from '../../vault/policies/decision.ts';
import { ACTIONS, isAction, type Policy, type PolicyDraft } from '../../vault/policies/policy.ts';
import { PolicyIndex } from '../../vault/policies/policy-index.ts';
import { parseMethod } from '../../vault/use/target.ts';
import { parseUrl } from '../../vault/use/upstream-url.ts';

function actionRule(text: string, where: string): string | null {
  if (isAction(text)) return null;
  const meant = nearest(text.toLowerCase(), ACTIONS);
  return `${where}: must be one of ${ACTIONS.join(', ')}${meant === null ? '' : `; did you mean ${meant}?`}`;
}

type ReadQuestion = { readonly question: AccessQuery } | { readonly problems: readonly string[] };

/** Returns a problem for each invalid field. Example of `request`: `GET https://api.example.com/v1/models`. */
export function readQuestion(agent: string, action: string, path: string, request: string | null = null): ReadQuestion {
  const [method = '', url = '', ...others] = request?.trim().split(/\s+/) ?? [];
  const problems = [
    ruleBroken(() => parsePrincipalName(agent, 'AGENT')),
    actionRule(action, 'ACTION'),
    ruleBroken(() => parsePath(path, 'PATH')),
    ...(request === null
      ? []
      : [
          action === 'use' ? null : 'REQUEST: is only for the action use',
          others.length === 0 ? null : 'REQUEST: must be a method and a URL',
          ruleBroken(() => parseMethod(method, 'METHOD')),
          ruleBroken(() => parseUrl(url, 'URL')),
        ]),
  ].filter((problem) => problem !== null);
  if (problems.length > 0) return { problems };
  return { question: { agent, action, path, request: request === null ? null : { method, url } } as AccessQuery };
}

export function toSimulation({ agent, action, path, request }: AccessQuery): SimulateRequest {
  return { agent, action, resource: path, ...(request === null ? {} : { request }) };
}

export const requestSuffix = ({ request }: Pick<AccessQuery, 'request'>): string =>
  request === null ? '' : ` ${request.method} ${request.url}`;

export type Ask = (question: AccessQuery) => Promise<Simulation>;

/**
 * Evaluates policies that exist only in files, with the decision function of the server. Every agent counts as
 * registered. Targets exist only in a vault, so a question about a request needs one.
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
