/** Saves policies, each only on top of the state that the operator saw, and then drops all cached decisions. */
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { Policy as PolicyText } from '../../../../src/client/types.ts';
import { Policy, type PolicyDraft } from '../../../../src/vault/policies/policy.ts';
import type { EditSubject } from '../../components/edit-conflict.tsx';
import { client } from '../../session/console-client.ts';
import { queries } from '../../session/queries.ts';

/** `before`: null for a new policy. @throws LeaseholdError PRECONDITION_FAILED if it was changed in the meantime, … */
export async function savePolicy(before: Tagged<PolicyText> | null, after: PolicyDraft): Promise<void> {
  if (before === null) await client.policies.create(Policy.toInput(after));
  else await client.policies.put(after.name, Policy.toInput(after), { ifMatch: before.tag });
  await forgetDecisions();
}

export const policySubject = (name: string): EditSubject => ({
  what: `The policy ${name}`,
  kind: 'policy',
  name,
});

export async function forgetDecisions(): Promise<void> {
  await queries.invalidateQueries({
    predicate: ({ queryKey }) => ['policies', 'policy', 'matrix', 'simulation'].includes(String(queryKey[0])),
  });
}
