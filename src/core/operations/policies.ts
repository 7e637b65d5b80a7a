/**
 * Creates, replaces, deletes, reads and simulates policies.
 * SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies".
 */

import type { BatchState } from '../batch-state.ts';
import { decide, explain } from '../decision.ts';
import { ApiError } from '../errors.ts';
import type { AgentName, PolicyName } from '../names.ts';
import { type Context, type Operation, operation, rejected, succeeded } from '../operation.ts';
import type { CredentialPath } from '../path.ts';
import type { Policy, PolicyDraft } from '../policy.ts';
import { adminOperation, adminRead } from './admin-read.ts';

export const createPolicy = adminOperation('policy.create', (spec, draft: PolicyDraft) =>
  operation({ ...spec, resource: `policy:${draft.name}` }, ({ state, moment, entry }) => {
    if (state.control.policies.get(draft.name) !== null) {
      const denied = entry('denied', { reason: 'the name is taken' });
      return rejected('ALREADY_EXISTS', 'A policy of this name exists already; PUT replaces it.', denied);
    }
    const policy: Policy = { ...draft, createdAt: moment.now };
    return succeeded(policy, entry('allowed'), [{ kind: 'putPolicy', policy }]);
  }),
);

/** Creates or replaces. */
export const replacePolicy = adminOperation('policy.replace', (spec, draft: PolicyDraft) => {
  const targetExists = ({ control }: BatchState): boolean => control.policies.get(draft.name) !== null;
  return operation({ ...spec, resource: `policy:${draft.name}`, targetExists }, ({ state, moment, entry }) => {
    const before = state.control.policies.get(draft.name);
    const policy: Policy = { ...draft, createdAt: before?.createdAt ?? moment.now };
    return succeeded(policy, entry('allowed'), [{ kind: 'putPolicy', policy }]);
  });
});

export const deletePolicy = adminOperation('policy.delete', (spec, name: PolicyName) =>
  operation({ ...spec, resource: `policy:${name}` }, ({ state, entry }) => {
    if (state.control.policies.get(name) === null) {
      return rejected('NOT_FOUND', 'The policy does not exist.', entry('not_found'));
    }
    return succeeded(null, entry('allowed'), [{ kind: 'removePolicy', name }]);
  }),
);

export const readPolicy = adminOperation('policy.read', (spec, name: PolicyName) =>
  adminRead<Policy>(
    spec,
    `policy:${name}`,
    ({ control }) => control.policies.get(name) ?? new ApiError('NOT_FOUND', 'The policy does not exist.'),
  ),
);

/** Sorted by name. */
export const listPolicies = adminOperation('policy.list', (spec) =>
  adminRead<readonly Policy[]>(spec, '*', ({ control }) => control.policies.all()),
);

export interface Simulated {
  readonly allowed: boolean;
  readonly policyName: PolicyName | null;
  readonly leaseTtlSeconds: number | null;
  readonly reason: string;
}

/** Calls the decision function, changes nothing and is not recorded. An agent may simulate only for itself. */
export function simulate(
  context: Context,
  question: { readonly agent: AgentName; readonly path: CredentialPath; readonly action: string },
): Operation<Simulated> {
  const { agent, path, action } = question;
  return operation(
    { context, event: 'policy.simulate', resource: path, requiredRole: 'authenticated' },
    ({ caller, state, entry }) => {
      if (caller.kind === 'agent' && caller.agent.name !== agent) {
        const denied = entry('denied', { reason: 'an agent may simulate only for itself' });
        return rejected('ACCESS_DENIED', 'An agent may simulate only for itself.', denied);
      }
      const { policies } = state.control;
      const decision = decide(policies, agent, action, path);
      const isRegistered = state.control.agentByName(agent) !== null;
      const simulated: Simulated = {
        allowed: decision.allowed,
        policyName: decision.allowed ? decision.policyName : null,
        leaseTtlSeconds: decision.allowed ? decision.ttlSeconds : null,
        reason: explain(decision, { policies, agent, isRegistered, action, path }),
      };
      return succeeded(simulated, null);
    },
  );
}
