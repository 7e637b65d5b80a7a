/**
 * Explains a decision of the server policy by policy, with the functions that decide; and what would grant a denied
 * access, and nothing else.
 */

import type { PrincipalName } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import { matches, nearestPattern, type Pattern } from '../../core/pattern.ts';
import { ruleBroken } from '../../engine/errors.ts';
import { originOf, parseTargets } from '../use/target.ts';
import { parseUrl } from '../use/upstream-url.ts';
import { type Action, Policy, type PolicyDraft, principalMatches, principalOf } from './policy.ts';

export interface AccessQuery {
  readonly agent: PrincipalName;
  readonly action: Action;
  readonly path: CredentialPath;
  /** The request of a question about `use`, as it was written. */
  readonly request: { readonly method: string; readonly url: string } | null;
}

interface Verdict {
  readonly allowed: boolean;
  readonly policy_name: string | null;
  readonly lease_ttl: number | null;
  readonly reason: string;
}

/** The tests of a policy, in the order of evaluation. */
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
  /** This field and the next three are from the server. */
  readonly allowed: boolean;
  readonly policy_name: string | null;
  readonly lease_ttl: number | null;
  readonly reason: string;
  /** Nearest first; null when the caller may not list policies. */
  readonly policies: readonly Considered[] | null;
  /** The nearest pattern that is granted for the action; null when one matches or none exists. */
  readonly nearest_pattern: string | null;
  readonly grant: PolicyDraft | null;
  /** The target that would allow the request, when a policy grants it and the targets do not. */
  readonly target: ExactTarget | null;
}

/** A target in the form that `PUT /api/v1/targets` takes. */
export interface ExactTarget {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly methods: readonly string[];
}

export function explainAccess(
  question: AccessQuery,
  policies: readonly Policy[] | null,
  { allowed, policy_name, lease_ttl, reason }: Verdict,
): Explanation {
  const answer = { ...question, allowed, policy_name, lease_ttl, reason };
  if (policies === null) return { ...answer, policies: null, nearest_pattern: null, grant: null, target: null };
  const considered = policies.map((policy) => consider(question, policy, policy_name)).sort(nearestFirst);
  const near = considered.flatMap(({ failed, pattern }) => (failed === 'pattern' && pattern !== null ? [pattern] : []));
  const isGranted = considered.some(({ failed }) => failed === null);
  return {
    ...answer,
    policies: considered,
    nearest_pattern: isGranted ? null : nearestPattern(near, question.path),
    grant: allowed || isGranted ? null : grantDraft(question, new Set(policies.map(({ name }) => name))),
    target: allowed || !isGranted ? null : exactTarget(question),
  };
}

/** Null if no target can have exactly the path, because it is outside the grammar of patterns. */
function exactTarget({ request }: AccessQuery): ExactTarget | null {
  if (request === null) return null;
  const url = parseUrl(request.url);
  const target = { origin: originOf(url), paths: [url.path], methods: [request.method] };
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

/** `taken`: names of existing policies, which a policy of the same name would replace. */
function grantDraft({ agent, action, path }: AccessQuery, taken: ReadonlySet<string>): PolicyDraft {
  const stem = `${agent.replace(':', '-')}-${action}`;
  let name = stem;
  for (let number = 2; taken.has(name); number++) name = `${stem}-${number}`;
  return Policy.parse({
    name,
    principal: principalOf(agent),
    resources: [path],
    actions: [action],
  });
}
