/** An explanation for people: the answer, what was considered, and the way to another answer. */
import { toCell } from '../output/cells.ts';
import type { Considered, Explanation } from './explanation.ts';

export const EXPLANATION_COLUMNS = ['policy', 'principal', 'max_ttl', 'result'] as const;
type Row = Readonly<Record<(typeof EXPLANATION_COLUMNS)[number], string | number>>;

/** The answer, in the service's words. */
export function verdictLines({
  agent,
  action,
  path,
  allowed,
  policy_name,
  lease_ttl,
  reason,
  agrees,
}: Explanation): string[] {
  const answer = allowed ? `ALLOWED by ${policy_name}, for up to ${lease_ttl} s` : 'DENIED';
  const stale =
    agrees === false
      ? [
          'The policies below were read a moment apart from this answer, and changed meanwhile. The answer stands; ask again.',
        ]
      : [];
  return [`${agent} ${action} ${path}: ${answer}`, toCell(reason), ...stale];
}

/** A row for each policy; of those that do not name the agent only where `showsAll`. */
export function consideredRows(policies: readonly Considered[], action: string, showsAll: boolean): Row[] {
  return policies
    .filter(({ failed }) => showsAll || failed !== 'principal')
    .map((policy) => ({
      policy: policy.name,
      principal: policy.principal,
      max_ttl: policy.max_ttl,
      result: resultOf(policy, action),
    }));
}

function resultOf({ failed, pattern, decides }: Considered, action: string): string {
  switch (failed) {
    case null:
      return decides ? `decides: the shortest lease of those that match (${pattern})` : `matches (${pattern})`;
    case 'principal':
      return 'fails principal: names other agents';
    case 'action':
      return `fails action: does not grant ${action}`;
    case 'pattern':
      return `fails pattern: the nearest is ${pattern}`;
  }
}

/** What was left out, and the command that would grant it: the nearest pattern stands in the service's own sentence. */
export function remedyLines({ policies, grant, agent }: Explanation, showsAll: boolean): string[] {
  if (policies === null) return ['Only the administrator may see which policies were considered, and grant more.'];
  const others = showsAll ? 0 : policies.filter(({ failed }) => failed === 'principal').length;
  const lines =
    others === 0
      ? []
      : [`${others} more ${others === 1 ? 'policy does' : 'policies do'} not name ${agent}; --all shows them.`];
  if (grant !== null) lines.push('This would grant it, and nothing else:', `  ${grant}`);
  return lines;
}
