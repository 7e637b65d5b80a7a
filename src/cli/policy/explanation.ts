/** Explains a decision of the server policy by policy, with the functions that decide. */

import type { Policy as PolicyText, Simulation } from '../../client/types.ts';
import { quoteWord } from '../../platform/shell-command.ts';
import {
  type AccessQuery,
  type Considered,
  type Explanation as CoreExplanation,
  explainAccess as explain,
} from '../../vault/policies/access-explanation.ts';
import { Policy, type PolicyDraft } from '../../vault/policies/policy.ts';
import { toCell } from '../output/cells.ts';
import { requestSuffix } from './access-query.ts';

interface Explanation extends Omit<CoreExplanation, 'grant'> {
  readonly grant: string | null;
}

/** `listed` is null when the caller may not list policies. */
export function explainAccess(
  question: AccessQuery,
  listed: readonly PolicyText[] | null,
  simulation: Simulation,
): Explanation {
  const explanation = explain(question, listed?.map((policy) => Policy.fromReply(policy)) ?? null, simulation);
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
