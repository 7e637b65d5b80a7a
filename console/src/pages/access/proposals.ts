/** Changes of policies that would allow a denied access: the one that grants least is first. */
import type { AccessQuery } from '../../../../src/core/access-explanation.ts';
import type { Pattern } from '../../../../src/core/pattern.ts';
import { matches } from '../../../../src/core/pattern.ts';
import { ACTIONS, MAX_RESOURCES, type Policy, type PolicyDraft, principalOf } from '../../../../src/core/policy.ts';

export interface Proposal {
  /** Null for a new policy. */
  readonly before: Policy | null;
  readonly after: PolicyDraft;
  readonly title: string;
  /** What it grants in addition to what was asked for; null if nothing. */
  readonly alsoGrants: string | null;
}

const MAX_PROPOSALS = 4;

/** `grant`: the new policy that grants this access and nothing else. */
export function proposalsFor(question: AccessQuery, grant: PolicyDraft, policies: readonly Policy[]): Proposal[] {
  const { agent, action, path } = question;
  // WHY only these: a change of a policy for several agents would grant it to the others, too.
  const ofAgent = policies.filter(({ principal }) => principal === principalOf(agent));
  const extensions = ofAgent.flatMap((policy): (Proposal & { readonly extra: number })[] => {
    const { name, actions, resources } = policy;
    if (actions.includes(action)) {
      if (resources.length >= MAX_RESOURCES) return [];
      const others = actions.filter((each) => each !== action);
      const after = { ...policy, resources: [...resources, path as string as Pattern] };
      const alsoGrants = others.length === 0 ? null : `${others.join(', ')} on this path`;
      return [{ before: policy, after, title: `Add the path to ${name}`, alsoGrants, extra: others.length }];
    }
    if (!resources.some((pattern) => matches(pattern, path))) return [];
    const others = resources.filter((pattern) => (pattern as string) !== path);
    const after = { ...policy, actions: ACTIONS.filter((each) => each === action || actions.includes(each)) };
    const alsoGrants = others.length === 0 ? null : `${action} on ${others.join(', ')}`;
    return [{ before: policy, after, title: `Add ${action} to ${name}`, alsoGrants, extra: others.length }];
  });
  extensions.sort((a, b) => a.extra - b.extra || b.after.resources.length - a.after.resources.length);
  const exact = extensions.filter(({ extra }) => extra === 0);
  const created: Proposal = { before: null, after: grant, title: `Create ${grant.name}`, alsoGrants: null };
  return [...exact, created, ...extensions.filter(({ extra }) => extra > 0)].slice(0, MAX_PROPOSALS);
}
