/** Records uses that were rejected because of a policy's limits. The node that counts has decided already. */
import type { AgentName, PolicyName } from '../names.ts';
import { type Context, type Operation, succeeded } from '../operation.ts';
import type { CredentialPath } from '../path.ts';

export interface RejectedUses {
  readonly agentName: AgentName;
  readonly policyName: PolicyName;
  /** Such as `100 uses per hour`. */
  readonly limit: string;
  /** The request of a single rejection; null for a summary. */
  readonly single: { readonly path: CredentialPath; readonly context: Context } | null;
  readonly count: number;
}

export function recordRejectedUses({ agentName, policyName, limit, single, count }: RejectedUses): Operation<null> {
  const over = `over the policy's limit of ${limit}`;
  return {
    reads: {},
    requester: { kind: 'service' },
    decide: () =>
      succeeded(null, {
        eventType: 'credential.use',
        agentName,
        resource: single?.path ?? '*',
        result: 'denied',
        policyName,
        leaseId: null,
        reason: single === null ? `${count} more ${count === 1 ? 'use was' : 'uses were'} rejected: ${over}` : over,
        requestId: single?.context.requestId ?? null,
        remoteAddr: single?.context.remoteAddr ?? null,
      }),
  };
}
