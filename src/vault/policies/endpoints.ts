/** Endpoints that create, replace, delete and read policies. SOURCE: docs/api.md, "Policies". */
import type { BatchState } from '../../core/batch-state.ts';
import { putRow, removeRow } from '../../core/change.ts';
import { adminEndpoint, draftOf, keyOf, nothing, replacementOf } from '../../core/endpoint.ts';
import { type PolicyName, SERVICE } from '../../core/names.ts';
import { denied, type Operation, rejected, succeeded } from '../../core/operation.ts';
import { draftEntry } from '../audit/audit-entry.ts';
import { hasExpired, Policy } from './policy.ts';
import { beyondReach, liftsApproval } from './reach.ts';

const find = ({ control }: BatchState, name: PolicyName): Policy | null => control.policies.get(name);

const IN_PAST = rejected({ code: 'time_in_past', field: 'expires_at' }, null);

/** Replies with the policies, sorted by name. */
export const listPolicies = adminEndpoint({
  id: 'listPolicies',
  method: 'GET',
  path: '/api/v1/policies',
  summary: 'List policies.',
  permission: 'policy.list',
  input: nothing(Policy),
  reply: 'list',
  decide: ({ state }) => succeeded<readonly Policy[]>(state.control.policies.all(), null),
});

export const createPolicy = adminEndpoint({
  id: 'createPolicy',
  method: 'POST',
  path: '/api/v1/policies',
  summary: 'Create a policy.',
  permission: 'policy.create',
  status: 201,
  acceptsIdempotencyKey: true,
  input: draftOf(Policy),
  reply: 'row',
  decide(input, draft) {
    const { state, moment, entry } = input;
    if (hasExpired(draft, moment.now)) return IN_PAST;
    const beyond = beyondReach(input, [draft]);
    if (beyond !== null) return beyond;
    if (find(state, draft.name) !== null) return denied(input, { code: 'name_taken', of: 'policy' });
    const policy: Policy = { ...draft, createdAt: moment.now };
    return succeeded(policy, entry('allowed'), [putRow('policy', policy)]);
  },
});

export const readPolicy = adminEndpoint({
  id: 'readPolicy',
  method: 'GET',
  path: '/api/v1/policies/{name}',
  summary: 'Read a policy.',
  permission: 'policy.read',
  input: keyOf(Policy),
  reply: 'row',
  find,
  decide({ state }, name) {
    const policy = find(state, name);
    return policy === null ? rejected({ code: 'policy_not_found' }, null) : succeeded(policy, null);
  },
});

export const replacePolicy = adminEndpoint({
  id: 'replacePolicy',
  method: 'PUT',
  path: '/api/v1/policies/{name}',
  summary: 'Create or replace a policy.',
  permission: 'policy.replace',
  input: replacementOf(Policy),
  reply: 'row',
  find: (known, { name }) => find(known, name),
  decide(input, draft) {
    const { state, moment, entry } = input;
    if (hasExpired(draft, moment.now)) return IN_PAST;
    const before = find(state, draft.name);
    const beyond =
      beyondReach(input, before === null ? [draft] : [before, draft]) ??
      (before === null ? null : liftsApproval(input, before));
    if (beyond !== null) return beyond;
    const policy: Policy = { ...draft, createdAt: before?.createdAt ?? moment.now };
    return succeeded(policy, entry('allowed'), [putRow('policy', policy)]);
  },
});

export const deletePolicy = adminEndpoint({
  id: 'deletePolicy',
  method: 'DELETE',
  path: '/api/v1/policies/{name}',
  summary: 'Delete a policy. It grants nothing from its audit entry on.',
  permission: 'policy.delete',
  input: keyOf(Policy),
  reply: null,
  find,
  decide(input, name) {
    const { state, entry } = input;
    const policy = find(state, name);
    if (policy === null) return denied(input, { code: 'policy_not_found' });
    const beyond = beyondReach(input, [policy]) ?? liftsApproval(input, policy);
    if (beyond !== null) return beyond;
    return succeeded(null, entry('allowed'), [removeRow('policy', { name })]);
  },
});

/** ORDER: a batch decides these operations first, so that an expired policy grants nothing. */
export function deleteExpired({ name }: Policy): Operation<null> {
  const eventType = 'policy.delete';
  const resource = `policy:${name}`;
  const entry = draftEntry({ eventType, agentName: SERVICE, resource, result: 'allowed', reason: 'it expired' });
  return {
    reads: {},
    auth: { kind: 'service' },
    decide: () => succeeded(null, entry, [removeRow('policy', { name })]),
  };
}
