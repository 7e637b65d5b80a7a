/** `explain_access`: whether the policies allow an action to this agent, and what an operator would change. */
import { Type } from 'typebox';
import type { Leasehold } from '../client/leasehold.ts';
import { ACTIONS } from '../vault/policies/policy.ts';
import type { ActingAgent } from './agent.ts';
import { ONLY_READS, oneOf, readPath, strict, type Tool } from './tool.ts';
import { quote } from './untrusted.ts';

const input = strict({
  path: Type.String({ maxLength: 512, description: 'Path of a credential, whether or not it exists.' }),
  action: Type.Optional(oneOf(ACTIONS, 'The action; `use` by default, which http_request needs.')),
});
const output = strict({
  is_allowed: Type.Boolean(),
  reason: Type.String(),
  lease_seconds: Type.Union([Type.Integer(), Type.Null()], { description: 'Maximum duration of a lease.' }),
  for_the_operator: Type.Union([Type.String(), Type.Null()], {
    description: 'Text to show to the operator, who decides; null if the action is allowed.',
  }),
});

export function explainAccess(client: Leasehold, acting: ActingAgent): Tool<typeof input, typeof output> {
  return {
    name: 'explain_access',
    title: 'Explain access',
    description:
      'Returns whether the policies allow this agent an action on a path, why, and what an operator would change. Nothing is accessed or recorded, and this tool cannot grant access.',
    input,
    output,
    annotations: ONLY_READS,
    async call({ path: text, action = 'use' }, signal) {
      const path = readPath(text);
      const agent = await acting.name();
      const { allowed, lease_ttl, reason } = await client.policies.simulate(
        { agent, resource: path, action },
        { signal },
      );
      return {
        is_allowed: allowed,
        // Other principals wrote the names of policies and patterns.
        reason: quote(reason, 600),
        lease_seconds: lease_ttl,
        for_the_operator: allowed
          ? null
          : `The agent ${agent} asks for the action ${action} on ${path}. If that is intended, store a policy with the principal agent:${agent}, the resource ${path} and the action ${action}; leasehold policy explain ${agent} ${action} ${path} shows what was considered.`,
      };
    },
  };
}
