/**
 * Writes policies, each only on top of the state that the operator saw, and forgets every decision that was read.
 */
import { LeaseholdError } from '../../../../src/client/errors.ts';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import { toPolicy, toReplacement } from '../../../../src/client/policy-drafts.ts';
import type { Policy as PolicyText } from '../../../../src/client/types.ts';
import type { Policy, PolicyDraft } from '../../../../src/core/policy.ts';
import { compare } from '../../../../src/core/policy-comparison.ts';
import { type Conflict, findConflict } from '../../components/edit-conflict.tsx';
import { client } from '../../session/console-client.ts';
import { queries } from '../../session/queries.ts';

/** `before`: null for a new policy. @throws LeaseholdError PRECONDITION_FAILED if somebody else changed it, … */
export async function savePolicy(before: Tagged<PolicyText> | null, after: PolicyDraft): Promise<void> {
  if (before === null) await client.policies.create({ name: after.name, ...toReplacement(after) });
  else await client.policies.put(after.name, toReplacement(after), { ifMatch: before.tag });
  await forgetDecisions();
}

/** Saves a policy that was read in a list, which has no tags. @throws LeaseholdError as `savePolicy` does */
export async function savePolicyOfList(before: Policy | null, after: PolicyDraft): Promise<void> {
  if (before === null) return savePolicy(null, after);
  const present = await client.policies.readTagged(before.name).catch((error: unknown) => {
    if (error instanceof LeaseholdError && error.code === 'NOT_FOUND') return null;
    throw error;
  });
  if (present === null || compare(before, toPolicy(present.data)).length > 0)
    throw new LeaseholdError('PRECONDITION_FAILED', 'The policy was changed or deleted since it was read.');
  return savePolicy(present, after);
}

export function findPolicyConflict(failure: unknown, name: string): Promise<Conflict<PolicyText> | null> {
  return findConflict(failure, {
    read: () => client.policies.readTagged(name),
    resource: `policy:${name}`,
    events: ['policy.create', 'policy.replace', 'policy.delete'],
  });
}

export async function forgetDecisions(): Promise<void> {
  await queries.invalidateQueries({
    predicate: ({ queryKey }) => ['policies', 'policy', 'matrix', 'simulation'].includes(String(queryKey[0])),
  });
}
