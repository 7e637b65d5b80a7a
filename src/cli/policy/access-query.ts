/**
 * An access query: whether an agent may perform an action on a path. It is validated here, evaluated here or by the
 * server, and its answer is explained policy by policy, with the functions that decide.
 */
import type { Policy as PolicyText, SimulateRequest, Simulation } from '../../client/types.ts';
import { parsePrincipalName } from '../../core/names.ts';
import { nearest } from '../../core/operator-text.ts';
import { parsePath } from '../../core/path.ts';
import { ruleBroken } from '../../engine/errors.ts';
import { quoteWord } from '../../platform/installation.ts';
import {
  type AccessQuery,
  type Considered,
  type Explanation as CoreExplanation,
  explainAccess as explanationOf,
} from '../../vault/policies/access-explanation.ts';
import { explain } from '../../vault/policies/decision-text.ts';
import { ACTIONS, isAction, Policy, type PolicyDraft } from '../../vault/policies/policy.ts';
import { decide, PolicyIndex } from '../../vault/policies/policy-index.ts';
import { parseMethod } from '../../vault/use/target.ts';
import { parseUrl } from '../../vault/use/upstream-url.ts';
import { toCell } from '../output/cells.ts';

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

export type Simulator = (question: AccessQuery) => Promise<Simulation>;

/**
 * Evaluates policies that exist only in files, with the decision function of the server. Every agent counts as
 * registered. Targets exist only in a vault, so a question about a request needs one.
 */
export function localSimulator(drafts: readonly PolicyDraft[]): Simulator {
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

interface Explanation extends Omit<CoreExplanation, 'grant'> {
  readonly grant: string | null;
}

/** `listed` is null when the caller may not list policies. */
export function explainAccess(
  question: AccessQuery,
  listed: readonly PolicyText[] | null,
  simulation: Simulation,
): Explanation {
  const explanation = explanationOf(question, listed?.map((policy) => Policy.fromReply(policy)) ?? null, simulation);
  return { ...explanation, grant: explanation.grant === null ? null : putCommand(explanation.grant) };
}

export const EXPLANATION_COLUMNS = ['policy', 'principal', 'max_ttl', 'result'] as const;
type Row = Readonly<Record<(typeof EXPLANATION_COLUMNS)[number], string | number>>;

export function verdictLines(explanation: Explanation): string[] {
  const { agent, action, path, allowed, policy_name, lease_ttl, reason } = explanation;
  const answer = allowed ? `ALLOWED by ${policy_name}, for up to ${lease_ttl} s` : 'DENIED';
  return [`${agent} ${action} ${path}${requestSuffix(explanation)}: ${answer}`, toCell(reason)];
}

export function consideredRows(policies: readonly Considered[], action: string, showsAll: boolean): Row[] {
  return policies
    .filter(({ failed }) => showsAll || failed !== 'principal')
    .map((policy) => {
      const { name, principal, max_ttl } = policy;
      return { policy: name, principal, max_ttl, result: resultOf(policy, action) };
    });
}

function resultOf({ failed, pattern, decides }: Considered, action: string): string {
  if (failed === 'principal') return 'fails principal: names other agents';
  if (failed === 'action') return `fails action: does not grant ${action}`;
  if (failed === 'pattern') return `fails pattern: the nearest is ${pattern}`;
  return decides ? `decides: the shortest lease of those that match (${pattern})` : `matches (${pattern})`;
}

export function remedyLines({ policies, grant, target, agent, path }: Explanation, showsAll: boolean): string[] {
  if (policies === null) return ['Only the administrator may see which policies were considered, and grant more.'];
  const others = showsAll ? 0 : policies.filter(({ failed }) => failed === 'principal').length;
  const lines =
    others === 0
      ? []
      : [`${others} more ${others === 1 ? 'policy does' : 'policies do'} not name ${agent}; --all shows them.`];
  if (grant !== null) lines.push('This would grant it, and nothing else:', `  ${grant}`);
  if (target !== null) {
    const words = [target.origin, '--path', ...target.paths, '--method', ...target.methods].map(quoteWord).join(' ');
    lines.push('This would allow it, and nothing else:');
    lines.push(`  leasehold target put ${quoteWord(path)} --add --origin ${words}`);
  }
  return lines;
}

/** The command, quoted for a POSIX shell. */
function putCommand(draft: PolicyDraft): string {
  const { name, principal, resources, actions, maxTtlSeconds } = draft;
  // WHY `=`: a path that begins with a dash would be parsed as a flag.
  const paths = resources.flatMap((path) => (path.startsWith('-') ? [`--resource=${path}`] : ['--resource', path]));
  const grants = ['--principal', principal, ...paths, ...actions.flatMap((action) => ['--action', action])];
  const flags = [...grants, '--max-ttl', String(maxTtlSeconds)];
  return ['leasehold', 'policy', 'put', name, ...flags].map(quoteWord).join(' ');
}
