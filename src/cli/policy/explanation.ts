/** Explains a decision of the service policy by policy, with the functions that decide. */

import type { Policy as PolicyText, Simulation } from '../../client/types.ts';
import { nearestPattern } from '../../core/decision.ts';
import { matches, type Pattern } from '../../core/pattern.ts';
import { type Policy, principalMatches, principalOf } from '../../core/policy.ts';
import { type HostPattern, originOf, parseTargets } from '../../core/target.ts';
import { parseUrl } from '../../core/upstream-url.ts';
import { quoteWord } from '../../platform/shell-quoting.ts';
import { toCell } from '../output/cells.ts';
import { type AccessQuery, requestSuffix } from './access-query.ts';
import { toPolicy } from './fields.ts';
import { ruleBroken } from './problems.ts';

/** In the order of evaluation. */
type Test = 'principal' | 'action' | 'pattern';

export interface Considered {
  readonly name: string;
  readonly principal: string;
  readonly max_ttl: number;
  /** The first test that failed; null when the policy matches. */
  readonly failed: Test | null;
  /** The pattern that matches the path, or the nearest one when only that test failed. */
  readonly pattern: Pattern | null;
  readonly decides: boolean;
}

export interface Explanation {
  readonly agent: string;
  readonly action: string;
  readonly path: string;
  readonly request: AccessQuery['request'];
  /** This field and the next three are from the service. */
  readonly allowed: boolean;
  readonly policy_name: string | null;
  readonly lease_ttl: number | null;
  readonly reason: string;
  /** Nearest first; null when the caller may not list policies. */
  readonly policies: readonly Considered[] | null;
  /** The nearest pattern that is granted for the action; null when one matches or none exists. */
  readonly nearest_pattern: string | null;
  /** The command that would grant it; null when a policy grants it. */
  readonly grant: string | null;
  /** The target that would allow the request, when a policy grants it and the targets do not. */
  readonly target: ExactTarget | null;
}

/** As `PUT /api/v1/targets` takes it. */
interface ExactTarget {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly methods: readonly string[];
}

/** `listed` is null when the caller may not list policies. */
export function explainAccess(
  question: AccessQuery,
  listed: readonly PolicyText[] | null,
  { allowed, policy_name, lease_ttl, reason }: Simulation,
): Explanation {
  const answer = { ...question, allowed, policy_name, lease_ttl, reason };
  if (listed === null) return { ...answer, policies: null, nearest_pattern: null, grant: null, target: null };
  const policies = listed.map(toPolicy);
  const considered = policies.map((policy) => consider(question, policy, policy_name)).sort(nearestFirst);
  const near = considered.flatMap(({ failed, pattern }) => (failed === 'pattern' && pattern !== null ? [pattern] : []));
  const isGranted = considered.some(({ failed }) => failed === null);
  return {
    ...answer,
    policies: considered,
    nearest_pattern: isGranted ? null : nearestPattern(near, question.path),
    grant: allowed || isGranted ? null : grantCommand(question, new Set(listed.map(({ name }) => name))),
    target: allowed || !isGranted ? null : exactTarget(question),
  };
}

/** Null if no target can have exactly the path, because it is outside the grammar of patterns. */
function exactTarget({ request }: AccessQuery): ExactTarget | null {
  if (request === null) return null;
  const { scheme, host, port, path } = parseUrl(request.url);
  const origin = originOf({ scheme, host: host as string as HostPattern, port });
  const target = { origin, paths: [path], methods: [request.method] };
  // Plain HTTP needs a network, which --add takes from the target that has the origin.
  const complete = { ...target, allow_networks: ['0.0.0.0/0'] };
  return ruleBroken(() => parseTargets([complete])) === null ? target : null;
}

function consider({ agent, action, path }: AccessQuery, policy: Policy, decider: string | null): Considered {
  const { name, principal, maxTtlSeconds: max_ttl, actions, resources } = policy;
  const considered = { name, principal, max_ttl, decides: name === decider };
  if (!principalMatches(principal, agent)) return { ...considered, failed: 'principal', pattern: null };
  if (!actions.includes(action)) return { ...considered, failed: 'action', pattern: null };
  const matching = resources.find((pattern) => matches(pattern, path));
  if (matching !== undefined) return { ...considered, failed: null, pattern: matching };
  return { ...considered, failed: 'pattern', pattern: nearestPattern(resources, path) };
}

const ORDER: readonly (Test | null)[] = [null, 'pattern', 'action', 'principal'];

/** The deciding policy, then other matches by lease length, then by the test that failed. */
function nearestFirst(a: Considered, b: Considered): number {
  return (
    ORDER.indexOf(a.failed) - ORDER.indexOf(b.failed) ||
    (a.failed === null ? a.max_ttl - b.max_ttl : 0) ||
    (a.name < b.name ? -1 : 1)
  );
}

export const EXPLANATION_COLUMNS = ['policy', 'principal', 'max_ttl', 'result'] as const;
type Row = Readonly<Record<(typeof EXPLANATION_COLUMNS)[number], string | number>>;

/** The decision and the reason that the service gave. */
export function verdictLines(explanation: Explanation): string[] {
  const { agent, action, path, allowed, policy_name, lease_ttl, reason } = explanation;
  const answer = allowed ? `ALLOWED by ${policy_name}, for up to ${lease_ttl} s` : 'DENIED';
  return [`${agent} ${action} ${path}${requestSuffix(explanation)}: ${answer}`, toCell(reason)];
}

/** A row for each policy; policies that do not name the agent only with `showsAll`. */
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

/** The number of omitted policies, and the command that would grant the access. */
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

const TTL_SECONDS = 300;

/** Quoted for a POSIX shell. `taken`: names of existing policies, which `put` would replace. */
export function grantCommand({ agent, action, path }: AccessQuery, taken: ReadonlySet<string>): string {
  const stem = `${agent.replace(':', '-')}-${action}`;
  let name = stem;
  for (let number = 2; taken.has(name); number++) name = `${stem}-${number}`;
  // WHY `=`: a path that begins with a dash would be parsed as a flag.
  const resource = path.startsWith('-') ? [`--resource=${path}`] : ['--resource', path];
  const flags = ['--principal', principalOf(agent), ...resource, '--action', action, '--max-ttl', String(TTL_SECONDS)];
  return ['leasehold', 'policy', 'put', name, ...flags].map(quoteWord).join(' ');
}
